import { fieldsOf, numberOf, parseJson, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';

/** Position in a server's messages; another adapter continues from it. */
export interface Progress {
  /** Counts the server's processes. */
  epoch: number;
  /** A person's last message; its time identifies the process. */
  user: { id: number; time: string } | null;
  agent: { id: number; text: string; stretch: number } | null;
  errorAt: string;
}

/** A longer message keeps its beginning: later additions may be written twice. */
const MAX_PLACE_TEXT = 64 * 1024;

export const NO_PROGRESS: Progress = { epoch: 0, user: null, agent: null, errorAt: '' };

export function parseProgress(text: string | null): Progress {
  const { epoch, user, agent, errorAt } = fieldsOf(parseJson(text ?? ''));
  const [person, program] = [fieldsOf(user), fieldsOf(agent)];
  const [userId, agentId] = [numberOf(person.id), numberOf(program.id)];
  return {
    epoch: numberOf(epoch) ?? 0,
    user: userId === null ? null : { id: userId, time: textOf(person.time) ?? '' },
    agent:
      agentId === null
        ? null
        : { id: agentId, text: textOf(program.text) ?? '', stretch: numberOf(program.stretch) ?? 0 },
    errorAt: textOf(errorAt) ?? '',
  };
}

export function serializeProgress(place: Progress): string {
  const { agent } = place;
  return JSON.stringify({ ...place, agent: agent && { ...agent, text: truncateText(agent.text, MAX_PLACE_TEXT) } });
}

/**
 * Returns the new text of a message that is rewritten as a whole: the lines after the common prefix or, if the screen
 * has scrolled, after the longest old suffix that is now a prefix.
 *
 * @returns '' if nothing was added
 */
export function addedText(before: string, now: string): string {
  if (now === before) return '';
  const [old, lines] = [before.split('\n'), now.split('\n')];
  const most = Math.min(old.length, lines.length);
  let same = 0;
  while (same < most && old[same] === lines[same]) same += 1;
  if (same === old.length) return joined(lines.slice(same));
  const overlap = overlapOf(old, lines);
  return joined(lines.slice(Math.max(same, overlap)));
}

/** Number of first lines that were the last lines before. */
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
