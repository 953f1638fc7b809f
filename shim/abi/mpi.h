/* The ABI of MPI 5.0 (its appendix A.1.1 and chapter 20): types and constants that the library
 * uses, for libcarpool_abi.so, which is built by this header in place of an MPI's own. Prototypes
 * are in shim/tables. MPIs that have this ABI: MPICH 5 and Intel MPI 2021.16 with libmpi_abi.so,
 * Open MPI 6. */
#ifndef CARPOOL_ABI_MPI_H
#define CARPOOL_ABI_MPI_H

#include <stdint.h>

#define MPI_VERSION        5
#define MPI_SUBVERSION     0
#define MPI_ABI_VERSION    1
#define MPI_ABI_SUBVERSION 0

typedef intptr_t MPI_Aint;
typedef int64_t MPI_Offset;
typedef int64_t MPI_Count;

typedef struct {
    int MPI_SOURCE, MPI_TAG, MPI_ERROR;
    int MPI_internal[5];
} MPI_Status;

/* Handles are pointers to what only MPI knows; predefined ones are small numbers. */
typedef struct MPI_ABI_Comm *MPI_Comm;
typedef struct MPI_ABI_Datatype *MPI_Datatype;
typedef struct MPI_ABI_Errhandler *MPI_Errhandler;
typedef struct MPI_ABI_File *MPI_File;
typedef struct MPI_ABI_Group *MPI_Group;
typedef struct MPI_ABI_Info *MPI_Info;
typedef struct MPI_ABI_Message *MPI_Message;
typedef struct MPI_ABI_Op *MPI_Op;
typedef struct MPI_ABI_Request *MPI_Request;
typedef struct MPI_ABI_Session *MPI_Session;
typedef struct MPI_ABI_Win *MPI_Win;
#define CPL_PREDEFINED(type, number) ((type)(intptr_t)(number))

#define MPI_COMM_NULL  CPL_PREDEFINED(MPI_Comm, 0x100)
#define MPI_COMM_WORLD CPL_PREDEFINED(MPI_Comm, 0x101)
#define MPI_COMM_SELF  CPL_PREDEFINED(MPI_Comm, 0x102)

#define MPI_GROUP_NULL CPL_PREDEFINED(MPI_Group, 0x108)

#define MPI_WIN_NULL CPL_PREDEFINED(MPI_Win, 0x110)

#define MPI_FILE_NULL CPL_PREDEFINED(MPI_File, 0x118)

#define MPI_MESSAGE_NULL    CPL_PREDEFINED(MPI_Message, 0x128)
#define MPI_MESSAGE_NO_PROC CPL_PREDEFINED(MPI_Message, 0x129)

#define MPI_INFO_NULL CPL_PREDEFINED(MPI_Info, 0x130)

/* The standard's number; Intel MPI 2021.19 has that of MPI_ERRORS_ABORT here (bind/find.c). */
extern MPI_Errhandler cpl_abi_errors_return;
#define MPI_ERRORS_RETURN cpl_abi_errors_return

#define MPI_REQUEST_NULL CPL_PREDEFINED(MPI_Request, 0x180)

#define MPI_OP_NULL CPL_PREDEFINED(MPI_Op, 0x20)
#define MPI_SUM     CPL_PREDEFINED(MPI_Op, 0x21)
#define MPI_MIN     CPL_PREDEFINED(MPI_Op, 0x22)
#define MPI_MAX     CPL_PREDEFINED(MPI_Op, 0x23)
#define MPI_PROD    CPL_PREDEFINED(MPI_Op, 0x24)
#define MPI_BAND    CPL_PREDEFINED(MPI_Op, 0x28)
#define MPI_BOR     CPL_PREDEFINED(MPI_Op, 0x29)
#define MPI_BXOR    CPL_PREDEFINED(MPI_Op, 0x2a)
#define MPI_LAND    CPL_PREDEFINED(MPI_Op, 0x30)
#define MPI_LOR     CPL_PREDEFINED(MPI_Op, 0x31)
#define MPI_LXOR    CPL_PREDEFINED(MPI_Op, 0x32)
#define MPI_MINLOC  CPL_PREDEFINED(MPI_Op, 0x38)
#define MPI_MAXLOC  CPL_PREDEFINED(MPI_Op, 0x39)

#define MPI_DATATYPE_NULL         CPL_PREDEFINED(MPI_Datatype, 0x200)
#define MPI_AINT                  CPL_PREDEFINED(MPI_Datatype, 0x201)
#define MPI_COUNT                 CPL_PREDEFINED(MPI_Datatype, 0x202)
#define MPI_OFFSET                CPL_PREDEFINED(MPI_Datatype, 0x203)
#define MPI_PACKED                CPL_PREDEFINED(MPI_Datatype, 0x207)
#define MPI_SHORT                 CPL_PREDEFINED(MPI_Datatype, 0x208)
#define MPI_INT                   CPL_PREDEFINED(MPI_Datatype, 0x209)
#define MPI_LONG                  CPL_PREDEFINED(MPI_Datatype, 0x20a)
#define MPI_LONG_LONG             CPL_PREDEFINED(MPI_Datatype, 0x20b)
#define MPI_UNSIGNED_SHORT        CPL_PREDEFINED(MPI_Datatype, 0x20c)
#define MPI_UNSIGNED              CPL_PREDEFINED(MPI_Datatype, 0x20d)
#define MPI_UNSIGNED_LONG         CPL_PREDEFINED(MPI_Datatype, 0x20e)
#define MPI_UNSIGNED_LONG_LONG    CPL_PREDEFINED(MPI_Datatype, 0x20f)
#define MPI_FLOAT                 CPL_PREDEFINED(MPI_Datatype, 0x210)
#define MPI_C_FLOAT_COMPLEX       CPL_PREDEFINED(MPI_Datatype, 0x212)
#define MPI_DOUBLE                CPL_PREDEFINED(MPI_Datatype, 0x214)
#define MPI_C_DOUBLE_COMPLEX      CPL_PREDEFINED(MPI_Datatype, 0x216)
#define MPI_LOGICAL               CPL_PREDEFINED(MPI_Datatype, 0x218)
#define MPI_INTEGER               CPL_PREDEFINED(MPI_Datatype, 0x219)
#define MPI_REAL                  CPL_PREDEFINED(MPI_Datatype, 0x21a)
#define MPI_COMPLEX               CPL_PREDEFINED(MPI_Datatype, 0x21b)
#define MPI_DOUBLE_PRECISION      CPL_PREDEFINED(MPI_Datatype, 0x21c)
#define MPI_DOUBLE_COMPLEX        CPL_PREDEFINED(MPI_Datatype, 0x21d)
#define MPI_LONG_DOUBLE           CPL_PREDEFINED(MPI_Datatype, 0x220)
#define MPI_C_LONG_DOUBLE_COMPLEX CPL_PREDEFINED(MPI_Datatype, 0x224)
#define MPI_FLOAT_INT             CPL_PREDEFINED(MPI_Datatype, 0x228)
#define MPI_DOUBLE_INT            CPL_PREDEFINED(MPI_Datatype, 0x229)
#define MPI_LONG_INT              CPL_PREDEFINED(MPI_Datatype, 0x22a)
#define MPI_2INT                  CPL_PREDEFINED(MPI_Datatype, 0x22b)
#define MPI_2REAL                 CPL_PREDEFINED(MPI_Datatype, 0x230)
#define MPI_2DOUBLE_PRECISION     CPL_PREDEFINED(MPI_Datatype, 0x231)
#define MPI_2INTEGER              CPL_PREDEFINED(MPI_Datatype, 0x232)
#define MPI_SHORT_INT             CPL_PREDEFINED(MPI_Datatype, 0x22c)
#define MPI_LONG_DOUBLE_INT       CPL_PREDEFINED(MPI_Datatype, 0x22d)
#define MPI_C_BOOL                CPL_PREDEFINED(MPI_Datatype, 0x238)
#define MPI_INT8_T                CPL_PREDEFINED(MPI_Datatype, 0x240)
#define MPI_UINT8_T               CPL_PREDEFINED(MPI_Datatype, 0x241)
#define MPI_CHAR                  CPL_PREDEFINED(MPI_Datatype, 0x243)
#define MPI_SIGNED_CHAR           CPL_PREDEFINED(MPI_Datatype, 0x244)
#define MPI_UNSIGNED_CHAR         CPL_PREDEFINED(MPI_Datatype, 0x245)
#define MPI_BYTE                  CPL_PREDEFINED(MPI_Datatype, 0x247)
#define MPI_INT16_T               CPL_PREDEFINED(MPI_Datatype, 0x248)
#define MPI_UINT16_T              CPL_PREDEFINED(MPI_Datatype, 0x249)
#define MPI_INT32_T               CPL_PREDEFINED(MPI_Datatype, 0x250)
#define MPI_UINT32_T              CPL_PREDEFINED(MPI_Datatype, 0x251)
#define MPI_INT64_T               CPL_PREDEFINED(MPI_Datatype, 0x258)
#define MPI_UINT64_T              CPL_PREDEFINED(MPI_Datatype, 0x259)

#define MPI_BOTTOM           ((void *)0)
#define MPI_IN_PLACE         ((void *)(intptr_t)1)
#define MPI_BUFFER_AUTOMATIC ((void *)(intptr_t)2)
#define MPI_STATUS_IGNORE    ((MPI_Status *)0)
#define MPI_STATUSES_IGNORE  ((MPI_Status *)0)
#define MPI_UNWEIGHTED       ((int *)(intptr_t)10)
#define MPI_WEIGHTS_EMPTY    ((int *)(intptr_t)11)

enum {
    MPI_SUCCESS = 0,
    MPI_ERR_BUFFER = 1,
    MPI_ERR_COUNT = 2,
    MPI_ERR_TYPE = 3,
    MPI_ERR_COMM = 5,
    MPI_ERR_REQUEST = 7,
    MPI_ERR_ROOT = 8,
    MPI_ERR_OP = 10,
    MPI_ERR_TOPOLOGY = 11,
    MPI_ERR_ARG = 13,
    MPI_ERR_TRUNCATE = 15,
    MPI_ERR_OTHER = 16,
    MPI_ERR_INTERN = 17,
    MPI_ERR_PENDING = 18,
    MPI_ERR_IN_STATUS = 19,
    MPI_ERR_NO_MEM = 39,
    MPI_ERR_UNSUPPORTED_OPERATION = 55,
    MPI_MODE_NOCHECK = 1024,
    MPI_ANY_SOURCE = -1,
    MPI_ANY_TAG = -2,
    MPI_PROC_NULL = -3,
    MPI_UNDEFINED = -32766,
    MPI_THREAD_SINGLE = 0,
    MPI_THREAD_SERIALIZED = 2048,
    MPI_THREAD_MULTIPLE = 4096,
    MPI_COMBINER_NAMED = 101,
    MPI_COMBINER_DUP = 102,
    MPI_COMBINER_CONTIGUOUS = 103,
    MPI_IDENT = 201,
    MPI_CONGRUENT = 202,
    MPI_UNEQUAL = 204,
    MPI_CART = 211,
    MPI_GRAPH = 212,
    MPI_DIST_GRAPH = 213,
    MPI_COMM_TYPE_SHARED = 221,
    MPI_LOCK_EXCLUSIVE = 301,
    MPI_KEYVAL_INVALID = 0,
    MPI_TAG_UB = 501,
};

#define MPI_BSEND_OVERHEAD             512
#define MPI_MAX_LIBRARY_VERSION_STRING 8192
#define MPI_MAX_PROCESSOR_NAME         256

typedef void MPI_User_function(void *, void *, int *, MPI_Datatype *);
typedef int MPI_Comm_copy_attr_function(MPI_Comm, int, void *, void *, void *, int *);
typedef int MPI_Comm_delete_attr_function(MPI_Comm, int, void *, void *);
typedef int MPI_Win_copy_attr_function(MPI_Win, int, void *, void *, void *, int *);
typedef int MPI_Win_delete_attr_function(MPI_Win, int, void *, void *);
typedef int MPI_Grequest_query_function(void *, MPI_Status *);
typedef int MPI_Grequest_free_function(void *);
typedef int MPI_Grequest_cancel_function(void *, int);
#define MPI_COMM_NULL_COPY_FN   ((MPI_Comm_copy_attr_function *)0)
#define MPI_COMM_NULL_DELETE_FN ((MPI_Comm_delete_attr_function *)0)
#define MPI_WIN_NULL_COPY_FN    ((MPI_Win_copy_attr_function *)0)

#endif
