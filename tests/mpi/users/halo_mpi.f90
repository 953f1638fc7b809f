! A program as users write it, in Fortran with `use mpi`: Jacobi iteration on a square, in two
! dimensions. Columns of the array are sent in place, rows are copied.
program halo
  use mpi
  implicit none
  integer :: cart, requests(8)
  integer, parameter :: cells = 48, iterations = 50
  integer :: ierr, rank, nranks, dims(2), coords(2), left, right, down, up, m, n, i, j, it
  logical :: periods(2)
  double precision, allocatable :: u(:,:), v(:,:), sl(:), sr(:), rl(:), rr(:)
  double precision :: mine, all

  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  dims = 0
  periods = .false.
  call MPI_Dims_create(nranks, 2, dims, ierr)
  call MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, .false., cart, ierr)
  call MPI_Comm_rank(cart, rank, ierr)
  call MPI_Cart_coords(cart, rank, 2, coords, ierr)
  call MPI_Cart_shift(cart, 0, 1, left, right, ierr)
  call MPI_Cart_shift(cart, 1, 1, down, up, ierr)
  m = cells*(coords(1) + 1)/dims(1) - cells*coords(1)/dims(1)
  n = cells*(coords(2) + 1)/dims(2) - cells*coords(2)/dims(2)
  allocate (u(0:m + 1, 0:n + 1), v(0:m + 1, 0:n + 1), sl(n), sr(n), rl(n), rr(n))
  u = 0
  v = 0
  rl = 0
  rr = 0
  do j = 1, n
    do i = 1, m
      u(i, j) = mod(7*(i + m*coords(1)) + 3*(j + n*coords(2)), 19)/8d0
    end do
  end do
  do it = 1, iterations
    sl = u(1, 1:n)
    sr = u(m, 1:n)
    call MPI_Irecv(rl, n, MPI_DOUBLE_PRECISION, left, 1, cart, requests(1), ierr)
    call MPI_Irecv(rr, n, MPI_DOUBLE_PRECISION, right, 2, cart, requests(2), ierr)
    call MPI_Irecv(u(1, 0), m, MPI_DOUBLE_PRECISION, down, 3, cart, requests(3), ierr)
    call MPI_Irecv(u(1, n + 1), m, MPI_DOUBLE_PRECISION, up, 4, cart, requests(4), ierr)
    call MPI_Isend(sr, n, MPI_DOUBLE_PRECISION, right, 1, cart, requests(5), ierr)
    call MPI_Isend(sl, n, MPI_DOUBLE_PRECISION, left, 2, cart, requests(6), ierr)
    call MPI_Isend(u(1, n), m, MPI_DOUBLE_PRECISION, up, 3, cart, requests(7), ierr)
    call MPI_Isend(u(1, 1), m, MPI_DOUBLE_PRECISION, down, 4, cart, requests(8), ierr)
    call MPI_Waitall(8, requests, MPI_STATUSES_IGNORE, ierr)
    u(0, 1:n) = rl
    u(m + 1, 1:n) = rr
    mine = 0
    do j = 1, n
      do i = 1, m
        v(i, j) = 0.5d0*u(i, j) + 0.125d0*(u(i - 1, j) + u(i + 1, j) + u(i, j - 1) + u(i, j + 1))
        mine = mine + (v(i, j) - u(i, j))**2
      end do
    end do
    u(1:m, 1:n) = v(1:m, 1:n)
    call MPI_Allreduce(mine, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, cart, ierr)
    if (rank == 0) print '(a,i0,a,es25.17e3)', 'iteration ', it, ' residual ', sqrt(all)
  end do
  call MPI_Comm_free(cart, ierr)
  call MPI_Finalize(ierr)
end program halo
