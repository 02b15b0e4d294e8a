/* Python's settings on a system with 64 bits, as far as its headers ask while the module for Python is compiled on
 * another system: Linux on both processors, with either C library, and Macs.
 *
 * The pyconfig.h beside those headers is of the system that builds, and some refuse every other. Python's pymacconfig.h,
 * which is read next, sets the sizes that differ among a Mac's processors; those here are the same on all. */
#ifndef Py_PYCONFIG_H
#define Py_PYCONFIG_H

#define HAVE_FORK 1
#define HAVE_LANGINFO_H 1
#define HAVE_LONG_LONG 1
#define HAVE_SSIZE_T 1
#define HAVE_STDDEF_H 1
#define HAVE_SYS_SELECT_H 1
#define HAVE_SYS_STAT_H 1
#define HAVE_SYS_TIME_H 1
#define HAVE_WCHAR_H 1
#define SIZEOF_INT 4
#define SIZEOF_LONG 8
#define SIZEOF_LONG_LONG 8
#define SIZEOF_PID_T 4
#define SIZEOF_SIZE_T 8
#define SIZEOF_VOID_P 8
#define SIZEOF_WCHAR_T 4
#define WITH_THREAD 1

_Static_assert(sizeof(int) == SIZEOF_INT && sizeof(long) == SIZEOF_LONG && sizeof(long long) == SIZEOF_LONG_LONG &&
                   sizeof(void *) == SIZEOF_VOID_P && sizeof(__SIZE_TYPE__) == SIZEOF_SIZE_T &&
                   sizeof(__WCHAR_TYPE__) == SIZEOF_WCHAR_T,
               "the sizes are those of a system with 64 bits");

#endif
