# A picture of record.tsv (bench/record.sh) as SVG. part=strategies: for each pattern the time of every
# strategy and auto; part=sizes, platforms, scale: the speed-up of auto by the size of a message, the
# machine, the number of ranks. Logarithmic.
BEGIN { FS = "\t"; left = 190; right = 150; row = 20; width = 520 }
FNR == 1 { next }
part == "strategies" && $1 == part {
    name = $2 " (" $3 ")"
    add(name, "direct", $9)
    if ($7 != "direct") add(name, $7, $10)
}
part != "strategies" && $1 == part { rows[name_of()] = 1; add(name_of(), label(), $11) }
part != "strategies" && $1 != part && $7 == "auto" && $4 == "edr" && $6 == 64 {
    base[name_of()] = $11
    base_label[name_of()] = label()
}
function name_of() { return part == "scale" ? $2 : $2 " (" $3 ")" }
function label() { return part == "sizes" ? $6 " B" : part == "platforms" ? $4 : $3 " ranks" }
function add(name, series, x) {
    if (!(name in place)) { place[name] = ++n_names; names[n_names] = name }
    if (!(series in color)) { color[series] = ++n_series; shown[n_series] = series }
    at[++n] = name; of[n] = series; value[n] = x
    if (n == 1 || x < least) least = x
    if (n == 1 || x > most) most = x
}
function x_of(v) { return left + width * (log(v) - log(least)) / (log(most) - log(least)) }
function escape(text) { gsub(/&/, "\\&amp;", text); gsub(/</, "\\&lt;", text); return text }
END {
    for (name in rows) sorted[++n_sorted] = name
    for (i = 2; i <= n_sorted; i++)
        for (k = i; k > 1 && sorted[k] < sorted[k - 1]; k--) {
            name = sorted[k]; sorted[k] = sorted[k - 1]; sorted[k - 1] = name
        }
    for (i = 1; i <= n_sorted; i++)
        if (sorted[i] in base) add(sorted[i], base_label[sorted[i]], base[sorted[i]])
    if (n == 0) { least = 1; most = 10 }
    if (most <= least) most = least * 10
    n_colors = split("#222222 #d62728 #1f77b4 #2ca02c #9467bd #8c564b #e377c2 #7f7f7f #bcbd22 #17becf #ff7f0e", colors, " ")
    height = row * (n_names + 3)
    of_part["strategies"] = "Time of an exchange in microseconds"
    of_part["sizes"] = "Speed-up of auto over direct by size of a message"
    of_part["platforms"] = "Speed-up of auto over direct by machine"
    of_part["scale"] = "Speed-up of auto over direct by number of ranks"
    title = of_part[part]
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n", left + width + right, height
    printf "<title>%s</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n<text x=\"%d\" y=\"14\">%s</text>\n", title, left, title
    for (power = -3; power <= 6; power++)
        for (k = 1; k <= 5; k += k == 1 ? 1 : 3) {
            v = k * 10 ^ power
            if (v < least || v > most) continue
            printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%g</text>\n", x_of(v), x_of(v), row, row * (n_names + 2), x_of(v), row * (n_names + 2) + 12, v
        }
    for (k = 1; k <= n_names; k++)
        printf "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%s</text>\n", left - 8, row * (k + 1) + 4, escape(names[k])
    for (i = 1; i <= n; i++)
        printf "<circle cx=\"%.1f\" cy=\"%d\" r=\"%g\" fill=\"%s\" fill-opacity=\"0.8\"><title>%s, %s: %s</title></circle>\n", x_of(value[i]), row * (place[at[i]] + 1), part != "strategies" || of[i] == "auto" || of[i] == "direct" ? 5 : 3, colors[(color[of[i]] - 1) % n_colors + 1], escape(at[i]), escape(of[i]), value[i]
    for (k = 1; k <= n_series; k++)
        printf "<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n", left + width + 24, row * (k + 1), colors[(k - 1) % n_colors + 1], left + width + 34, row * (k + 1) + 4, escape(shown[k])
    print "</svg>"
}
