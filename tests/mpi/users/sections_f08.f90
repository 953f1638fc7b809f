! A program as users write it, in Fortran with `use mpi_f08`: array sections as buffers, in all the
! ways of sending and completing that users choose from. What a rank gets is summed with weights.
program sections
  use mpi_f08
  implicit none
  integer, parameter :: m = 12, n = 10, iterations = 30
  type(MPI_Request) :: requests(8), kept(4)
  type(MPI_Status) :: status, statuses(8)
  integer :: rank, nranks, left, right, up, down, it, k, count, index
  logical :: done
  double precision, asynchronous :: u(m, n), v(m, n), line(m)
  double precision :: mine, all

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, nranks)
  left = mod(rank + nranks - 1, nranks)
  right = mod(rank + 1, nranks)
  down = mod(rank + nranks - 2, nranks)
  up = mod(rank + 2, nranks)
  do k = 1, n
    u(:, k) = [(dble(mod(37*rank + 11*k + 5*it, 23))/8, it=1, m)]
  end do
  v = 0
  line = 0
  call MPI_Recv_init(line(1:5), 5, MPI_DOUBLE_PRECISION, left, 6, MPI_COMM_WORLD, kept(1))
  call MPI_Recv_init(line(7:11), 5, MPI_DOUBLE_PRECISION, down, 7, MPI_COMM_WORLD, kept(2))
  call MPI_Send_init(u(2:6, 2), 5, MPI_DOUBLE_PRECISION, right, 6, MPI_COMM_WORLD, kept(3))
  call MPI_Send_init(u(3:7, 3), 5, MPI_DOUBLE_PRECISION, up, 7, MPI_COMM_WORLD, kept(4))

  do it = 1, iterations
    ! rows: every element of the section is in a column of its own; blocks; every second element
    call MPI_Irecv(v(1, 2:n - 1), n - 2, MPI_DOUBLE_PRECISION, left, 1, MPI_COMM_WORLD, requests(1))
    call MPI_Irecv(v(m, n - 1:2:-1), n - 2, MPI_DOUBLE_PRECISION, right, 2, MPI_COMM_WORLD, &
      requests(2))
    call MPI_Irecv(v(3:6, 2:5), 16, MPI_DOUBLE_PRECISION, down, 3, MPI_COMM_WORLD, requests(3))
    call MPI_Irecv(v(8:m - 1:2, 2:4), 6, MPI_DOUBLE_PRECISION, up, 4, MPI_COMM_WORLD, requests(4))
    call MPI_Isend(u(m, 2:n - 1), n - 2, MPI_DOUBLE_PRECISION, right, 1, MPI_COMM_WORLD, &
      requests(5))
    call MPI_Isend(u(1, 2:n - 1), n - 2, MPI_DOUBLE_PRECISION, left, 2, MPI_COMM_WORLD, requests(6))
    call MPI_Isend(u(2:5, 6:9), 16, MPI_DOUBLE_PRECISION, up, 3, MPI_COMM_WORLD, requests(7))
    call MPI_Isend(u(1:3, 1:7:4), 6, MPI_DOUBLE_PRECISION, down, 4, MPI_COMM_WORLD, requests(8))
    call complete(it)
    call MPI_Startall(4, kept)
    do k = 1, 4
      done = .false.
      do while (.not. done)
        call MPI_Test(kept(k), done, status)
      end do
      if (k == 1) call MPI_Get_count(status, MPI_DOUBLE_PRECISION, count)
    end do
    if (count /= 5) print *, 'count', count
    call MPI_Sendrecv(u(2, 1:n:3), 4, MPI_DOUBLE_PRECISION, right, 8, v(2, 1:n:3), 4, &
      MPI_DOUBLE_PRECISION, left, 8, MPI_COMM_WORLD, status)
    if (status%MPI_SOURCE /= left .or. status%MPI_TAG /= 8) print *, 'status', status
    call MPI_Sendrecv_replace(u(5, 1:n:2), 5, MPI_DOUBLE_PRECISION, up, 9, down, 9, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    mine = weighed(v) + 3*weighed(u) + dot_product(line, [(dble(k), k=1, m)])
    u = 0.75d0*u + 0.25d0*v
    call MPI_Allreduce(mine, all, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
    if (rank == 0) print '(i0,es25.17e3)', it, all
  end do
  do k = 1, 4
    call MPI_Request_free(kept(k))
  end do
  call MPI_Finalize()

contains

  ! All requests, another way each time.
  subroutine complete(it)
    integer, intent(in) :: it
    integer :: k, n_done, indices(8), left_over
    logical :: done
    select case (mod(it, 4))
    case (0)
      call MPI_Waitall(8, requests, statuses)
      if (statuses(3)%MPI_SOURCE /= down .or. statuses(3)%MPI_TAG /= 3) print *, 'status of', down
    case (1)
      done = .false.
      do while (.not. done)
        call MPI_Testall(8, requests, done, MPI_STATUSES_IGNORE)
      end do
    case (2)
      do k = 1, 8
        call MPI_Waitany(8, requests, index, status)
      end do
    case (3)
      left_over = 8
      do while (left_over > 0)
        call MPI_Testsome(8, requests, n_done, indices, statuses)
        left_over = left_over - n_done
      end do
    end select
    if (.not. MPI_ASYNC_PROTECTS_NONBLOCKING) call MPI_F_sync_reg(v)
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
end program sections
