// Increments each of `count` integers atomically.

__kernel void increment(volatile __global int *values, int count)
{
    const int i = (int)get_global_id(0);
    if (i < count)
        atomic_inc(values + i);
}
