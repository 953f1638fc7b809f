# Spack: put this file into REPOSITORY/packages/carpool/package.py, then `spack install carpool ^mpich`.
from spack.package import *


class Carpool(AutotoolsPackage):
    """Carries the exchanges of unmodified MPI programs in fewer messages (preloaded library)."""

    homepage = "https://example.org/carpool"
    git = "https://example.org/carpool.git"

    license("BSD-3-Clause")

    version("main", branch="main")

    variant("zlib", default=True, description="Read gzipped patterns")
    variant("developer", default=False, description="Verify every plan before it is used")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("libtool", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpich@4.0:")
    depends_on("hwloc@2:")
    depends_on("jansson@2.7:")
    depends_on("uthash", type="build")
    depends_on("zlib-api", when="+zlib")

    def configure_args(self):
        spec = self.spec
        return [
            "MPICC=" + spec["mpi"].mpicc,
            "MPIEXEC=" + join_path(spec["mpi"].prefix.bin, "mpiexec.hydra"),
            "--without-simgrid",
            "--without-metis",
        ] + self.with_or_without("zlib") + self.enable_or_disable("developer")
