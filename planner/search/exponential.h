/* e^x by its series after halving: the same bits with every compiler and C library, on which plans
 * must not depend. Relative error below 1e-10 for x from -700 to 700; below that 0, above that the
 * value at 700.
 */
#ifndef CARPOOL_EXPONENTIAL_H
#define CARPOOL_EXPONENTIAL_H

double cpl_exponential(double x);

#endif
