# The summary of record.tsv (bench/record.sh), as Markdown: a table a part, geometric means, and what
# does not meet the aims: auto never slower than 0.98 of direct, nor than 0.95 of the best strategy.
BEGIN { FS = "\t" }
FNR == 1 { next }
{
    n++
    part[n] = $1; pattern[n] = $2; ranks[n] = $3; machine[n] = $4; bytes[n] = $6; strategy[n] = $7
    chosen[n] = $8; direct[n] = $9; us[n] = $10; speedup[n] = $11; sends[n] = $12; recvs[n] = $13
    by_sends[n] = $14; by_recvs[n] = $15; messages[n] = $16; by_messages[n] = $17
    volume[n] = $18; by_volume[n] = $19; plan_ms[n] = $20; pays[n] = $21
    busiest = $12 > $13 ? $12 : $13
    irregular[n] = busiest > 3 * $16 / $3
    if ($7 == "auto" && $11 < 0.98)
        slow[++n_slow] = $1 ", " $2 ", " $3 " ranks, " $4 ", " $6 " B: " $11
}
function mean_add(name, x) { logs[name] += log(x); counts[name]++ }
function mean(name) { return counts[name] ? sprintf("%.2f", exp(logs[name] / counts[name])) : "-" }
function print_rows(rows, n_rows, columns, n_columns, r, c) {
    for (r = 1; r <= n_rows; r++) {
        printf "| %s |", rows[r]
        for (c = 1; c <= n_columns; c++)
            printf " %s |", (rows[r], columns[c]) in value ? value[rows[r], columns[c]] : ""
        print ""
    }
}
END {
    print "64 bytes, EDR fat tree, 32 ranks a node. * irregular: the busiest rank sends or receives more than three times the average.\n"
    print "| pattern | ranks | direct us | auto us | speed-up | best single | us | busiest rank, direct | auto | messages | auto | bytes, auto / direct | plan ms | pays after |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= n; i++) {
        if (part[i] != "strategies" || strategy[i] != "auto") continue
        best = 0
        for (k = 1; k <= n; k++)
            if (part[k] == part[i] && pattern[k] == pattern[i] && ranks[k] == ranks[i] && strategy[k] != "auto" && (!best || us[k] < us[best]))
                best = k
        printf "| %s%s | %s | %s | %s | %s | %s | %s | %s / %s | %s / %s | %s | %s | %.2f | %s | %s |\n", pattern[i], irregular[i] ? " *" : "", ranks[i], direct[i], us[i], speedup[i], best ? strategy[best] : "-", best ? us[best] : "-", sends[i], recvs[i], by_sends[i], by_recvs[i], messages[i], by_messages[i], by_volume[i] / volume[i], plan_ms[i], pays[i]
        if (ranks[i] == 512) mean_add(irregular[i] ? "irregular" : "regular", speedup[i])
        if (best && us[best] < 0.95 * us[i])
            behind[++n_behind] = pattern[i] ", " ranks[i] " ranks: " strategy[best] " " us[best] " us, auto " us[i]
    }
    printf "\nGeometric mean of auto over direct at 512 ranks: irregular patterns %s, others %s.\n", mean("irregular"), mean("regular")
    print "\nMicroseconds of each strategy, forced, and of auto:\n"
    printf "| pattern | ranks | direct |"
    n_strategies = 0
    for (i = 1; i <= n; i++)
        if (part[i] == "strategies" && strategy[i] != "auto" && !(strategy[i] in forced)) {
            forced[strategy[i]] = 1
            strategies[++n_strategies] = strategy[i]
            printf " %s |", strategy[i]
        }
    printf " auto | by |\n|---|---|---|---|---|"
    for (s = 1; s <= n_strategies; s++) printf "---|"
    print ""
    for (i = 1; i <= n; i++)
        if (part[i] == "strategies") time[pattern[i], ranks[i], strategy[i]] = us[i]
    for (i = 1; i <= n; i++) {
        if (part[i] != "strategies" || strategy[i] != "auto") continue
        printf "| %s | %s | %s |", pattern[i], ranks[i], direct[i]
        for (s = 1; s <= n_strategies; s++) printf " %s |", time[pattern[i], ranks[i], strategies[s]]
        printf " %s | %s |\n", us[i], chosen[i]
    }
    print "\nSpeed-up of auto by size of a message, by platform at 64 B:\n"
    print "| pattern | ranks | 8 B | 64 B | 512 B | 4 KiB | 64 KiB | torus | dragonfly | overheads / 2 | x 2 | receive / 2 |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= n; i++) {
        row = pattern[i] " | " ranks[i]
        if (strategy[i] == "auto" && machine[i] == "edr" && bytes[i] == 64) base[row] = speedup[i]
        if (part[i] != "sizes" && part[i] != "platforms") continue
        column = part[i] == "sizes" ? bytes[i] : machine[i]
        if (!(row in seen)) { seen[row] = 1; order[++n_order] = row }
        value[row, column] = speedup[i]
        mean_add(column, speedup[i])
    }
    n_columns = split("8 64 512 4096 65536 gemini aries edr-half edr-double edr-light", columns, " ")
    for (o = 1; o <= n_order; o++) {
        value[order[o], "64"] = base[order[o]]
        if (base[order[o]]) mean_add("64", base[order[o]])
    }
    print_rows(order, n_order, columns, n_columns)
    printf "| geometric mean | |"
    for (c = 1; c <= n_columns; c++) printf " %s |", mean(columns[c])
    print "\n\nMessages as long as the patterns' volumes, direct / auto in us, and the speed-up:\n"
    print "| pattern | ranks | 8 B a unit | | 64 B | | 512 B | |\n|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= n; i++) {
        if (part[i] != "volumes") continue
        row = pattern[i] " | " ranks[i]
        if (!(row in with_volumes)) { with_volumes[row] = 1; volumes[++n_volumes] = row }
        value[row, bytes[i]] = direct[i] " / " us[i] " | " speedup[i]
        mean_add(bytes[i], speedup[i])
    }
    n_columns = split("u8 u64 u512", columns, " ")
    print_rows(volumes, n_volumes, columns, n_columns)
    printf "| geometric mean | |"
    for (c = 1; c <= n_columns; c++) printf " | %s |", mean(columns[c])
    print "\n\nThe own families by ranks, 64 B:\n"
    print "| pattern | ranks | direct us | auto us | speed-up | chosen | busiest rank, direct | auto |"
    print "|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= n; i++)
        if (part[i] == "scale")
            printf "| %s | %s | %s | %s | %s | %s | %s / %s | %s / %s |\n", pattern[i], ranks[i], direct[i], us[i], speedup[i], chosen[i], sends[i], recvs[i], by_sends[i], by_recvs[i]
    printf "\nSlower than 0.98 of direct: %d runs of auto.\n", n_slow
    for (k = 1; k <= n_slow; k++) print "- " slow[k]
    printf "\nA single strategy more than 5%% faster than auto: %d patterns.\n", n_behind
    for (k = 1; k <= n_behind; k++) print "- " behind[k]
}
