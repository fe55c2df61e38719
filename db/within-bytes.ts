/** The first of them, and as many more as have no more than `most` bytes together. `size`: of each, in bytes. */
export function withinBytes<Row extends object>(rows: readonly (Row & { size?: unknown })[], most: number): Row[] {
  let bytes = 0;
  const end = rows.findIndex(({ size }, at) => {
    bytes += Number(size);
    return at > 0 && bytes > most;
  });
  return end < 0 ? [...rows] : rows.slice(0, end);
}
