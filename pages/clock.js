// What is the time in microseconds, and how coarse is it?

/** Microseconds since the page began. @returns {number} */
export const now_us = () => performance.now() * 1000;

/**
 * The smallest step that the clock was seen to make, in microseconds.
 *
 * @param {number} steps how many steps to watch
 * @returns {number}
 */
export function tick_us(steps = 50) {
  let smallest = Infinity;
  for (let seen = 0; seen < steps; seen++) {
    const before = now_us();
    let after = now_us();
    while (after === before) after = now_us();
    smallest = Math.min(smallest, after - before);
  }
  return smallest;
}

/**
 * Settles with the promise, or rejects once `limit_ms` have passed.
 *
 * @template T
 * @param {Promise<T>} promise
 * @param {number} limit_ms
 * @param {() => Error} late makes the error to reject with
 * @returns {Promise<T>}
 */
export function within(promise, limit_ms, late) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late()), limit_ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
