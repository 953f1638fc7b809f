! A program as users write it, in Fortran with `use mpi` (-DUSE_MPI) or mpif.h: persistent requests,
! derived types, Test loops, Sendrecv and probes. What a rank gets is summed with weights.
program ways
#ifdef USE_MPI
  use mpi
#endif
  implicit none
#ifndef USE_MPI
  include 'mpif.h'
#endif
  integer, parameter :: m = 12, n = 10, iterations = 32
  integer :: requests(8), kept(4), row, block, ierr
  integer :: rank, nranks, left, right, up, down, it, k, count
  integer :: status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 8)
  logical :: done
  double precision :: u(m, n), v(m, n), line(m), mine, all

  call MPI_Init(ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks, ierr)
  left = mod(rank + nranks - 1, nranks)
  right = mod(rank + 1, nranks)
  down = mod(rank + nranks - 2, nranks)
  up = mod(rank + 2, nranks)
  do k = 1, n
    u(:, k) = [(dble(mod(37*rank + 11*k + 5*it, 23))/8, it=1, m)]
  end do
  v = 0
  line = 0
  call MPI_Type_vector(n - 2, 1, m, MPI_DOUBLE_PRECISION, row, ierr)
  call MPI_Type_commit(row, ierr)
  call MPI_Type_create_subarray(2, (/m, n/), (/4, 3/), (/1, 2/), MPI_ORDER_FORTRAN, &
    MPI_DOUBLE_PRECISION, block, ierr)
  call MPI_Type_commit(block, ierr)
  call MPI_Recv_init(line(1), 5, MPI_DOUBLE_PRECISION, left, 6, MPI_COMM_WORLD, kept(1), ierr)
  call MPI_Recv_init(v, 1, block, down, 7, MPI_COMM_WORLD, kept(2), ierr)
  call MPI_Send_init(u(2, 2), 5, MPI_DOUBLE_PRECISION, right, 6, MPI_COMM_WORLD, kept(3), ierr)
  call MPI_Ssend_init(u, 1, block, up, 7, MPI_COMM_WORLD, kept(4), ierr)

  do it = 1, iterations
    call MPI_Irecv(v(1, 2), 1, row, left, 1, MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Irecv(v(m, 2), 1, row, right, 2, MPI_COMM_WORLD, requests(2), ierr)
    call MPI_Irecv(v(3, 1), 6, MPI_DOUBLE_PRECISION, down, 3, MPI_COMM_WORLD, requests(3), ierr)
    call MPI_Irecv(v(3, n), 6, MPI_DOUBLE_PRECISION, up, 4, MPI_COMM_WORLD, requests(4), ierr)
    call MPI_Isend(u(m, 2), 1, row, right, 1, MPI_COMM_WORLD, requests(5), ierr)
    call MPI_Isend(u(1, 2), 1, row, left, 2, MPI_COMM_WORLD, requests(6), ierr)
    call MPI_Isend(u(2, 5), 6, MPI_DOUBLE_PRECISION, up, 3, MPI_COMM_WORLD, requests(7), ierr)
    call MPI_Isend(u(4, 6), 6, MPI_DOUBLE_PRECISION, down, 4, MPI_COMM_WORLD, requests(8), ierr)
    call complete(it)
    call MPI_Start(kept(1), ierr)
    call MPI_Startall(3, kept(2:4), ierr)
    do k = 1, 4
      done = .false.
      do while (.not. done)
        call MPI_Test(kept(k), done, status, ierr)
      end do
      if (k == 1) call MPI_Get_count(status, MPI_DOUBLE_PRECISION, count, ierr)
    end do
    if (count /= 5) print *, 'count', count
    call MPI_Sendrecv(u(3, 4), 4, MPI_DOUBLE_PRECISION, right, 8, v(3, 4), 4, &
      MPI_DOUBLE_PRECISION, left, 8, MPI_COMM_WORLD, status, ierr)
    if (status(MPI_SOURCE) /= left .or. status(MPI_TAG) /= 8) print *, 'status', status
    call MPI_Sendrecv_replace(u(5, 1), 5, MPI_DOUBLE_PRECISION, up, 9, down, 9, MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    call MPI_Isend(u(1, 9), 1 + mod(it + rank, 5), MPI_DOUBLE_PRECISION, right, 10, &
      MPI_COMM_WORLD, requests(1), ierr)
    call MPI_Probe(left, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierr)
    call MPI_Get_count(status, MPI_DOUBLE_PRECISION, count, ierr)
    if (count /= 1 + mod(it + left, 5)) print *, 'probed', count
    call MPI_Recv(v(2, 8), count, MPI_DOUBLE_PRECISION, left, status(MPI_TAG), MPI_COMM_WORLD, &
      MPI_STATUS_IGNORE, ierr)
    call MPI_Wait(requests(1), MPI_STATUS_IGNORE, ierr)
    mine = weighed(v) + 3*weighed(u) + dot_product(line, [(dble(k), k=1, m)])
    u = 0.75d0*u + 0.25d0*v
    call MPI_Allreduce(mine, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierr)
    if (rank == 0) print '(i0,es25.17e3)', it, all
  end do
  do k = 1, 4
    call MPI_Request_free(kept(k), ierr)
  end do
  call MPI_Type_free(row, ierr)
  call MPI_Type_free(block, ierr)
  call MPI_Finalize(ierr)

contains

  ! All requests, another way each time.
  subroutine complete(it)
    integer, intent(in) :: it
    integer :: k, index, n_done, indices(8), left_over
    select case (mod(it, 4))
    case (0)
      call MPI_Waitall(8, requests, statuses, ierr)
      if (statuses(MPI_SOURCE, 3) /= down .or. statuses(MPI_TAG, 3) /= 3) print *, 'status of', down
    case (1)
      done = .false.
      do while (.not. done)
        call MPI_Testall(8, requests, done, MPI_STATUSES_IGNORE, ierr)
      end do
    case (2)
      do k = 1, 8
        call MPI_Waitany(8, requests, index, status, ierr)
      end do
    case (3)
      left_over = 8
      do while (left_over > 0)
        call MPI_Testsome(8, requests, n_done, indices, statuses, ierr)
        left_over = left_over - n_done
      end do
    end select
  end subroutine complete

  double precision function weighed(field)
    double precision, intent(in) :: field(m, n)
    integer :: i, j
    weighed = 0
    do j = 1, n
      do i = 1, m
        weighed = weighed + field(i, j)*(i + 13*j)
      end do
    end do
  end function weighed
end program ways
