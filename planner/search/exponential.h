/* e^x by its series after halving: the same bits with every compiler and C library, which plans
 * must not depend on. Relative error below 1e-10 for x from -700 to 700; 0 below, as at 700 above.
 */
#ifndef CARPOOL_EXPONENTIAL_H
#define CARPOOL_EXPONENTIAL_H

double cpl_exponential(double x);

#endif
