/* Outcomes of the planner's functions, and the caller-owned text that explains a failure.
 *
 * Every function that can fail returns an enum cpl_status; 0 is success. Outputs are set only on
 * success. A function that takes a struct cpl_error fills its text when it fails, and never prints:
 * whoever called decides whether and where the text is shown. Thread rule: no state, safe from any
 * thread. */
#ifndef CARPOOL_STATUS_H
#define CARPOOL_STATUS_H

#ifdef __cplusplus
extern "C" {
#endif

enum cpl_status {
    CPL_OK = 0,
    CPL_ERR_ARG,    /* an argument is outside what the function documents */
    CPL_ERR_NOMEM,  /* an allocation failed, or a size does not fit size_t */
    CPL_ERR_IO,     /* a file cannot be opened, read or written */
    CPL_ERR_FORMAT, /* a file or text is malformed; the error text names file and line */
    CPL_ERR_UNFIT,  /* a strategy cannot serve this pattern (for example vpt:5 on 8 ranks) */
    CPL_ERR_BROKEN  /* a plan violates an invariant; the error text names the invariant */
};

/* Text of a failure: one sentence without a newline, cut to fit. Owned by the caller; may be left
 * uninitialised. */
struct cpl_error {
    char text[400];
};

/* A short constant description of a status, for messages; never NULL. */
const char *cpl_status_text(enum cpl_status status);

/* Fills error (which may be NULL) from a printf format and returns status, so that a failing
 * function can end in `return cpl_fail(error, CPL_ERR_ARG, "...")`. */
enum cpl_status cpl_fail(struct cpl_error *error, enum cpl_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Reports that memory for `what` (a noun: "the send sets") could not be had. Returns
 * CPL_ERR_NOMEM. */
enum cpl_status cpl_fail_memory(struct cpl_error *error, const char *what);

#ifdef __cplusplus
}
#endif

#endif
