/**
 * What some work takes of a processor, in milliseconds, however busy the machine is with other things: the least of a
 * few runs, of which there are several only where the first one was slow.
 */
export function cpuMs(work: () => unknown, worthAnotherMs = 50): number {
  let least = Number.POSITIVE_INFINITY;
  for (let run = 0; run < 3 && least > worthAnotherMs; run++) {
    const before = process.cpuUsage();
    work();
    const { user, system } = process.cpuUsage(before);
    least = Math.min(least, (user + system) / 1000);
  }
  return least;
}
