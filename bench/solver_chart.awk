# A picture of solver.sh's figures as SVG: for each matrix the speed-up of each scheme by the number of
# ranks. Both axes are logarithmic.
BEGIN { FS = "\t"; size = 230; gap = 56; top = 44; left = 44 }
FNR == 1 { next }
{
    if (!($1 in panel)) { panel[$1] = n_panels++; matrix[n_panels] = $1 }
    if (!($3 in color)) { color[$3] = ++n_schemes; scheme[n_schemes] = $3 }
    n = ++n_lines
    of[n] = $1; ranks[n] = $2; by[n] = $3; speedup[n] = $5
    if (n == 1 || $2 + 0 < least_x) least_x = $2 + 0
    if (n == 1 || $2 + 0 > most_x) most_x = $2 + 0
    if (n == 1 || $5 + 0 < least_y) least_y = $5 + 0
    if (n == 1 || $5 + 0 > most_y) most_y = $5 + 0
}
function x_of(name, v) { return left + panel[name] * (size + gap) + size * (log(v) - log(least_x)) / (log(most_x) - log(least_x)) }
function y_of(v) { return top + size - size * (log(v) - log(least_y)) / (log(most_y) - log(least_y)) }
END {
    if (n_lines == 0) exit 1
    if (most_x <= least_x) most_x = 2 * least_x
    least_y /= 1.1; most_y *= 1.1
    split("#222222 #1f77b4 #d62728 #2ca02c #9467bd", colors, " ")
    width = left + n_panels * (size + gap) + 60
    printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" font-family=\"sans-serif\" font-size=\"11\">\n", width, top + size + 40
    printf "<title>Speed-up of conjugate gradients over one rank</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
    printf "<text x=\"%d\" y=\"14\">Speed-up over one rank, by number of ranks</text>\n", left
    for (p = 1; p <= n_panels; p++) {
        name = matrix[p]
        printf "<text x=\"%.1f\" y=\"%d\" font-weight=\"bold\">%s</text>\n", x_of(name, least_x), top - 8, name
        n_ticks = split("1 2 3 5 7 10 15 20 25 30 40 50 70 100 150 200 300 500 700 1000", ticks, " ")
        for (k = 1; k <= n_ticks; k++) {
            v = ticks[k] + 0
            if (v >= least_y && v <= most_y)
                printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#ddd\"/><text x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\" fill=\"#555\">%d</text>\n", x_of(name, least_x), x_of(name, most_x), y_of(v), y_of(v), x_of(name, least_x) - 6, y_of(v) + 4, v
        }
        for (v = least_x; v <= most_x; v *= 2)
            printf "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\" stroke=\"#eee\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#555\">%d</text>\n", x_of(name, v), x_of(name, v), top, top + size, x_of(name, v), top + size + 14, v
        for (s = 1; s <= n_schemes; s++) {
            points = ""
            for (i = 1; i <= n_lines; i++)
                if (of[i] == name && by[i] == scheme[s]) {
                    points = points sprintf("%.1f,%.1f ", x_of(name, ranks[i]), y_of(speedup[i]))
                    printf "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"><title>%s, %d ranks, %s: %s</title></circle>\n", x_of(name, ranks[i]), y_of(speedup[i]), colors[s], name, ranks[i], scheme[s], speedup[i]
                }
            printf "<polyline points=\"%s\" fill=\"none\" stroke=\"%s\"/>\n", points, colors[s]
        }
    }
    for (s = 1; s <= n_schemes; s++)
        printf "<circle cx=\"%d\" cy=\"%d\" r=\"4\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n", width - 100, top + 18 * s, colors[s], width - 90, top + 18 * s + 4, scheme[s]
    print "</svg>"
}
