! A program as users write it, in Fortran with `use mpi_f08`: a neighborhood collective and messages
! on one distributed graph.
program nb
  use mpi_f08
  implicit none
  type(MPI_Comm) :: ring
  type(MPI_Request) :: r(4)
  type(MPI_Status) :: st(4)
  integer :: rank, n, i, k, src(3), dst(3), a(3), b(3), x(2,2), y(2,2), s, all, idx
  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, n)
  do k = 1, 3
    dst(k) = mod(rank + k, n)
    src(k) = mod(rank - k + n, n)
  end do
  call MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 3, src, MPI_UNWEIGHTED, 3, dst, MPI_UNWEIGHTED, &
    MPI_INFO_NULL, .false., ring)
  do i = 1, 20
    a = [(rank*100 + i*3 + k, k=1,3)]
    b = 0
    call MPI_Neighbor_alltoall(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, ring)
    do k = 1, 2
      call MPI_Irecv(y(1,k), 2, MPI_INTEGER, src(k), 5, ring, r(k))
    end do
    x = b(1) + i
    do k = 1, 2
      call MPI_Isend(x(1,k), 2, MPI_INTEGER, dst(k), 5, ring, r(2+k))
    end do
    if (mod(i,2) == 0) then
      call MPI_Waitall(4, r, st)
    else
      do k = 1, 4
        call MPI_Waitany(4, r, idx, st(1))
      end do
    end if
    s = sum(b*[1,2,3]) + sum(y)
    call MPI_Allreduce(s, all, 1, MPI_INTEGER, MPI_SUM, ring)
    if (rank == 0) print *, i, b, y, all
  end do
  call MPI_Comm_free(ring)
  call MPI_Finalize()
end program
