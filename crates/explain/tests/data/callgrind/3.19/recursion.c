#include <stdlib.h>
int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int odd(int n); int even(int n) { return n == 0 ? 1 : odd(n - 1); }
int odd(int n) { return n == 0 ? 0 : even(n - 1); }
int deep3(int n){ return n*3; } int deep2(int n){ return deep3(n)+1; } int deep1(int n){ return deep2(n)+1; }
void mark(void) { }
int work(int n) { int s = 0; for (int i = 0; i < n; i++) s += fib(6) + even(7) + deep1(i); return s; }
int main(int c, char **v) { volatile int s = work(5); mark(); s += work(5); mark(); s += work(10); mark(); mark(); return s == 0; }
