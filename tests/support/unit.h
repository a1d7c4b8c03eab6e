/*
 * What every unit test includes: cmocka with the headers that it wants first.
 */
#ifndef SKEIN_TESTS_SUPPORT_UNIT_H
#define SKEIN_TESTS_SUPPORT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#endif
