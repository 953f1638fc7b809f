/* The state of a process (context.h). */
#include "shim/state/context.h"

struct cpl_context cpl_context;
