# Sentences of Markdown files that have more words than `most`, with file and line. A heading, an item
# of a list and a cell of a table end a sentence; code does not count.
#
#   awk -v most=35 -f long_sentences.awk FILE...

function look(text, file, line,    n, k, token, words, begin) {
    n = split(text, token, /[ \t]+/)
    for (k = 1; k <= n; k++) {
        if (token[k] ~ /[A-Za-z0-9]/ && ++words <= 6) begin = begin " " token[k]
        if (k < n && token[k] !~ /[A-Za-z0-9`)*"%\]][.!?][)"*`]*$/) continue
        if (words > most) print file ":" line ": " words " words:" begin
        words = 0
        begin = ""
    }
}

function end_text() {
    look(text, file, line)
    text = ""
}

FNR == 1 { end_text(); fenced = code = 0; blank = 1 }
/^ *```/ { end_text(); fenced = !fenced; next }
fenced { next }
/^ *$/ { end_text(); blank = 1; next }
/^    / && text == "" && (blank || code) && !/^ *([-*]|[0-9]+[.]) / { code = 1; next }
{ code = blank = 0 }
/^#/ { end_text(); next }
/^ *[|]/ {
    end_text()
    n = split($0, cell, "[|]")
    for (k = 1; k <= n; k++) look(cell[k], FILENAME, FNR)
    next
}
/^ *([-*]|[0-9]+[.]) / { end_text() }
{
    if (text == "") { file = FILENAME; line = FNR }
    text = text " " $0
}
END { end_text() }
