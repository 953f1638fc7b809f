/* Errors: texts through the communicator's error handler. At its first error an array gets an error
 * class from MPI; each error replaces the class's text. MPI has few classes; when there are no
 * more, errors are of class MPI_ERR_ARG, without the text.
 *
 * MPICH 4.0.2 has 128. It goes on counting when asked for more, and frees texts by that count in
 * MPI_Finalize, so this file never asks for that many. */
#include "array_internal.h"

#include <stdarg.h>
#include <stdio.h>

struct cpl_quiet cpl_quiet_begin(void)
{
    struct cpl_quiet quiet = {MPI_ERRHANDLER_NULL, MPI_ERRHANDLER_NULL};
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &quiet.self);
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &quiet.world);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    return quiet;
}

void cpl_quiet_end(struct cpl_quiet *quiet)
{
    MPI_Comm_set_errhandler(MPI_COMM_SELF, quiet->self);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, quiet->world);
    MPI_Errhandler_free(&quiet->self);
    MPI_Errhandler_free(&quiet->world);
}

#define MOST_CLASSES 100 /* of all arrays and the program together */
#define ALL_CLASSES  128 /* MPICH's; from 4.2 on their numbers begin so much higher */

static bool has_classes(void)
{
    int *last, is_set = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_LASTUSEDCODE, &last, &is_set);
    return !is_set || (*last - MPI_ERR_LASTCODE) % ALL_CLASSES < MOST_CLASSES;
}

/* Returns 0 when there is no class any more, which is not an error of the program. */
static int make_code(int *error_class)
{
    int code = 0;
    if (!has_classes())
        return 0;
    struct cpl_quiet quiet = cpl_quiet_begin();
    if (MPI_Add_error_class(error_class) != MPI_SUCCESS ||
        MPI_Add_error_code(*error_class, &code) != MPI_SUCCESS)
        code = 0;
    cpl_quiet_end(&quiet);
    return code;
}

int cpl_array_error(carpool_array *array, MPI_Comm comm, const char *function, const char *format,
                    ...)
{
    char text[MPI_MAX_ERROR_STRING];
    int error_class, own_code = 0, *code = array ? &array->error_code : &own_code;
    int used = snprintf(text, sizeof text, "%s: ", function);
    va_list args;
    va_start(args, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, args);
    va_end(args);
    if (*code == 0)
        *code = make_code(array ? &array->error_class : &error_class);
    if (*code != 0)
        MPI_Add_error_string(*code, text);
    int result = *code ? *code : MPI_ERR_ARG;
    if (array && array->body)
        comm = array->user_comm;
    MPI_Comm_call_errhandler(comm, result);
    return result;
}

int cpl_array_mpi_error(carpool_array *array, int code)
{
    MPI_Comm_call_errhandler(array->user_comm, code);
    return code;
}
