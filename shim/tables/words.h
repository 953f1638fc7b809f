/* Functions of MPI as the ABIs of 64-bit Linux pass them on: each argument, an integer or a
 * pointer, fills one place of a word, whatever its type. So a function that takes and gives words
 * can stand before a function of any MPI, whose handles may be integers or pointers, and lose
 * nothing. */
#ifndef CARPOOL_WORDS_H
#define CARPOOL_WORDS_H

#include <stdint.h>

_Static_assert(sizeof(intptr_t) == 8, "an argument of 64 bits fills one place");

typedef intptr_t cpl_word;

/* Functions that calls pass on their way to MPI. They lie together, since with many ranks on a core
 * the cost of a call is the pages that it touches. */
#define CPL_PASSED __attribute__((hot))

/* The number of elements of a list, as a token: CPL_COUNT(a, b) is 2. */
#define CPL_COUNT(...) CPL_COUNTED(__VA_ARGS__, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1)

#define CPL_COUNTED(a, b, c, d, e, f, g, h, i, j, k, l, m, n, count, ...) count

/* n parameters, and what they are called. */
#define CPL_TAKES(n)  CPL_TAKES_(n)
#define CPL_GIVES(n)  CPL_GIVES_(n)
#define CPL_TAKES_(n) CPL_TAKES_##n
#define CPL_GIVES_(n) CPL_GIVES_##n
#define CPL_TAKES_0   void
#define CPL_TAKES_1   cpl_word a
#define CPL_TAKES_2   CPL_TAKES_1, cpl_word b
#define CPL_TAKES_3   CPL_TAKES_2, cpl_word c
#define CPL_TAKES_4   CPL_TAKES_3, cpl_word d
#define CPL_TAKES_5   CPL_TAKES_4, cpl_word e
#define CPL_TAKES_6   CPL_TAKES_5, cpl_word f
#define CPL_TAKES_7   CPL_TAKES_6, cpl_word g
#define CPL_TAKES_8   CPL_TAKES_7, cpl_word h
#define CPL_TAKES_9   CPL_TAKES_8, cpl_word i
#define CPL_TAKES_10  CPL_TAKES_9, cpl_word j
#define CPL_TAKES_11  CPL_TAKES_10, cpl_word k
#define CPL_TAKES_12  CPL_TAKES_11, cpl_word l
#define CPL_TAKES_13  CPL_TAKES_12, cpl_word m
#define CPL_TAKES_14  CPL_TAKES_13, cpl_word n
#define CPL_GIVES_0
#define CPL_GIVES_1  a
#define CPL_GIVES_2  CPL_GIVES_1, b
#define CPL_GIVES_3  CPL_GIVES_2, c
#define CPL_GIVES_4  CPL_GIVES_3, d
#define CPL_GIVES_5  CPL_GIVES_4, e
#define CPL_GIVES_6  CPL_GIVES_5, f
#define CPL_GIVES_7  CPL_GIVES_6, g
#define CPL_GIVES_8  CPL_GIVES_7, h
#define CPL_GIVES_9  CPL_GIVES_8, i
#define CPL_GIVES_10 CPL_GIVES_9, j
#define CPL_GIVES_11 CPL_GIVES_10, k
#define CPL_GIVES_12 CPL_GIVES_11, l
#define CPL_GIVES_13 CPL_GIVES_12, m
#define CPL_GIVES_14 CPL_GIVES_13, n

#endif
