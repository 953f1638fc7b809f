#!/bin/sh
# The version. It is in configure.ac; all other places where it is written are set from here.
#
#   version.sh               prints it; fails when another place has another one
#   version.sh NEW [DATE]    sets it everywhere, with today's date (or DATE, as 2026-11-28): man pages, CITATION.cff,
#                            the Debian changelog, the EasyBuild file, and the heading "Not released" of CHANGELOG.md
set -u
cd "$(dirname "$0")/.." || exit 1
version=$(sed -n 's/^AC_INIT(\[carpool\], \[\([0-9.]*\)\].*/\1/p' configure.ac)
[ -n "$version" ] || { echo "$0: configure.ac has no AC_INIT([carpool], [VERSION], ...)" >&2; exit 1; }
dotted=$(echo "$version" | sed 's/[.]/[.]/g')
easybuild=packaging/easybuild/Carpool-$version-gmpich.eb

check() {
    code=0
    while IFS='|' read -r file expression; do
        grep -Eq "$expression" "$file" 2>/dev/null && continue
        echo "$0: $file does not have the version $version of configure.ac; packaging/version.sh $version sets it" >&2
        code=1
    done <<LIST
CITATION.cff|^version: $dotted\$
CHANGELOG.md|^## $dotted [(]
debian/changelog|^carpool [(]${dotted}[)]
doc/carpool.1|^[.]TH .* "Carpool $dotted"
doc/carpool.7|^[.]TH .* "Carpool $dotted"
doc/carpool_array.3|^[.]TH .* "Carpool $dotted"
$easybuild|^version = '$dotted'\$
Makefile.am|[ /]Carpool-$dotted-gmpich[.]eb
LIST
    return $code
}

if [ $# -eq 0 ]; then
    check || exit 1
    echo "$version"
    exit
fi
new=$1 date=${2:-$(date -u +%Y-%m-%d)}
echo "$new" | grep -Eqx '[0-9]+[.][0-9]+[.][0-9]+' || { echo "$0: '$new' is no version such as 1.2.3" >&2; exit 2; }
long=$(LC_ALL=C date -u -d "$date" '+%-d %B %Y') || { echo "$0: '$date' is no date such as 2026-11-28" >&2; exit 2; }
if ! grep -q "^## $new (" CHANGELOG.md; then
    grep -qx '## Not released' CHANGELOG.md ||
        { echo "$0: CHANGELOG.md has no heading \"## Not released\": write below it what $new changes" >&2; exit 1; }
    sed -i "s/^## Not released\$/## $new ($long)/" CHANGELOG.md
fi
sed -i "s/^AC_INIT(\[carpool\], \[[0-9.]*\]/AC_INIT([carpool], [$new]/" configure.ac
sed -i -e "s/^version: .*/version: $new/" -e "s/^date-released: .*/date-released: $date/" CITATION.cff
roff_date=$(echo "$date" | sed 's/-/\\\\-/g')
for page in doc/carpool.1 doc/carpool.7 doc/carpool_array.3; do
    sed -i "1s/^\(.TH [A-Z_]* [0-9]\) [^ ]* \"Carpool [0-9.]*\"/\1 $roff_date \"Carpool $new\"/" "$page"
done
if ! grep -q "^carpool ($new)" debian/changelog; then
    {
        printf 'carpool (%s) unstable; urgency=medium\n\n  * See CHANGELOG.md.\n\n' "$new"
        printf ' -- Carpool developers <carpool@example.org>  %s\n\n' "$(LC_ALL=C date -u -d "$date" '+%a, %d %b %Y %H:%M:%S +0000')"
        cat debian/changelog
    } >debian/changelog.new && mv debian/changelog.new debian/changelog
fi
if [ "$new" != "$version" ]; then
    mv "$easybuild" "packaging/easybuild/Carpool-$new-gmpich.eb"
fi
sed -i -e "s/Carpool-$dotted-gmpich/Carpool-$new-gmpich/" -e "s/^version = .*/version = '$new'/" \
    "packaging/easybuild/Carpool-$new-gmpich.eb"
sed -i "s/Carpool-$dotted-gmpich/Carpool-$new-gmpich/" Makefile.am
exec sh packaging/version.sh
