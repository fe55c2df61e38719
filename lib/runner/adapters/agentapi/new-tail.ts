/**
 * What of a message is new, where its agent rewrites it as a whole: the lines behind those that it begins with as
 * before, or, where the screen has moved on, behind the longest end of it that is now the beginning.
 *
 * @param before as it was when it was told last
 * @returns '' if nothing came to it
 */
export function newTail(before: string, now: string): string {
  if (now === before) return '';
  const [old, lines] = [before.split('\n'), now.split('\n')];
  const most = Math.min(old.length, lines.length);
  let same = 0;
  while (same < most && old[same] === lines[same]) same += 1;
  if (same === old.length) return joined(lines.slice(same));
  const overlap = overlapOf(old, lines);
  return joined(lines.slice(Math.max(same, overlap)));
}

/** How many of the first lines now are the last ones before. */
function overlapOf(old: readonly string[], lines: readonly string[]): number {
  for (let at = Math.max(1, old.length - lines.length); at < old.length; at += 1) {
    if (old[at] !== lines[0]) continue;
    const length = old.length - at;
    let same = 1;
    while (same < length && old[at + same] === lines[same]) same += 1;
    if (same === length) return length;
  }
  return 0;
}

function joined(lines: readonly string[]): string {
  return lines.join('\n').replace(/^\n+/, '').trimEnd();
}
