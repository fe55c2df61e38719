import type { RequestOption } from '@interlude/protocol/ag-ui';
import { truncateText } from '@interlude/protocol/text';
import { withoutTrailing } from './agentapi-frames';

/**
 * A choice on a stable screen. Only unambiguous forms count: a list numbered from 1 with one marked entry, or a
 * question ending in its answers.
 */
export interface ScreenPrompt {
  /**
   * Screen text down to the last answer, without the mark. Identifies the prompt.
   */
  text: string;
  title: string;
  options: (RequestOption & { isMarked: boolean })[];
  /** `arrows`: move the mark and confirm. `letters`: type a letter. */
  keys: 'arrows' | 'letters';
}

/** Lines examined from the end of the screen. */
const MOST_LINES = 200;
const MAX_TEXT = 64 * 1024;
const MOST_OPTIONS = 12;
const MOST_WRAPPED = 3;
const MOST_QUESTION = 12;
const MAX_LABEL = 200;
const CUT_ABOVE = '… [the terminal shows more above]';

const MARK = /^(\s*(?:[│┃|]\s?)?\s*)[❯>›→▸](?=\s*\d{1,2}[.)]\s)/;
const OPTION = /^\s*(?:([❯>›→▸])\s*)?(\d{1,2})[.)]\s+(\S.*)$/;
const DENIES = /^(no\b|n$|den[yi]|reject|cancel|abort|don['’]?t|do not|skip|exit|quit|stop)/i;
const LASTS = /don['’]?t ask again|do not ask again|always|for this session|\ball\b/i;

export function parseScreenPrompt(screen: string): ScreenPrompt | null {
  const all = withoutTrailing(screen).split('\n');
  const shown = all.slice(-MOST_LINES);
  const lines = shown.map(withoutBox);
  const found = listed(lines) ?? yesNoPrompt(lines);
  if (found === null) return null;
  const { last, ...prompt } = found;
  const text = downTo(last, shown, all.length > shown.length);
  return text === null ? null : { ...prompt, text };
}

/** A prompt with the index of its last line. */
type Found = Omit<ScreenPrompt, 'text'> & { last: number };

/** @returns null if the last line alone exceeds MAX_TEXT */
function downTo(last: number, shown: readonly string[], isCut: boolean): string | null {
  const lines = shown.slice(0, last + 1).map((line) => line.replace(MARK, '$1 '));
  let from = lines.findIndex((line) => line !== '');
  let room = MAX_TEXT - lines.reduce((sum, line) => sum + line.length + 1, 0);
  let isAbove = isCut;
  for (; room < 0 && from < last; from += 1) {
    room += (lines[from] ?? '').length + 1;
    isAbove = true;
  }
  if (room < 0) return null;
  return [...(isAbove ? [CUT_ABOVE] : []), ...lines.slice(from)].join('\n');
}

function listed(lines: readonly string[]): Found | null {
  const last = lines.findLastIndex((line) => OPTION.test(line));
  if (last < 0) return null;
  const found: { at: number; mark: boolean; number: number; label: string }[] = [];
  for (let at = last; at >= 0 && found.length < MOST_OPTIONS; at -= 1) {
    const [, mark, number, label = ''] = OPTION.exec(lines[at] ?? '') ?? [];
    if (number === undefined) {
      // A long answer wraps.
      if ((found.at(-1)?.at ?? last) - at > MOST_WRAPPED) break;
      continue;
    }
    found.push({ at, mark: mark !== undefined, number: Number(number), label });
    if (number === '1') break;
  }
  found.reverse();
  const first = found[0]?.at ?? 0;
  const end = last + wrapped(lines, last);
  const isList = found.length >= 2 && found.every(({ number }, index) => number === index + 1);
  if (!isList || found.filter(({ mark }) => mark).length !== 1) return null;
  // At most a line of help may follow a choice.
  if (lines.slice(end + 1).filter((line) => line.trim() !== '').length > MOST_WRAPPED) return null;
  const question = questionAbove(lines, first);
  const options = found.map(({ at, number, label, mark }, index) => {
    const more = lines.slice(at + 1, found[index + 1]?.at ?? end + 1).map((line) => line.trim());
    const words = [label, ...more].filter((line) => line !== '').join(' ');
    return { ...optionOf(String(number), words), isMarked: mark };
  });
  return { title: titleOf(question), options, keys: 'arrows', last: end };
}

/** Number of indented lines directly after the last answer that belong to it. */
function wrapped(lines: readonly string[], last: number): number {
  const end = lines.findIndex((line, index) => index > last && !/^\s{2,}\S/.test(line));
  const count = (end < 0 ? lines.length : end) - last - 1;
  return lines[last + count + 1]?.trim() || count > MOST_WRAPPED ? 0 : count;
}

/** `Continue? [y/N]`, `Run it? (Y)es/(N)o/(A)ll [Yes]:` */
function yesNoPrompt(lines: readonly string[]): Found | null {
  const index = lines.findLastIndex((line) => line.trim() !== '');
  const line = lines[index]?.trim() ?? '';
  const isYesNo = /[[(](y\/n|yes\/no)[\])]\s*:?$/i.test(line);
  const letters = /\[\w+\]\s*:$/.test(line) ? [...line.matchAll(/\((\w)\)([\w’' ]*)/g)] : [];
  if (!isYesNo && letters.length < 2) return null;
  const choices = isYesNo
    ? [
        ['y', 'Yes'],
        ['n', 'No'],
      ]
    : letters.map(([, key = '', rest = '']) => [key.toLowerCase(), key + rest]);
  if (new Set(choices.map(([key]) => key)).size < choices.length) return null;
  const options = choices.map(([key = '', label = '']) => ({ ...optionOf(key, label.trim()), isMarked: false }));
  return { title: truncateText(line, MAX_LABEL), options, keys: 'letters', last: index };
}

function optionOf(id: string, label: string): RequestOption {
  const kind = DENIES.test(label.trim()) ? 'deny' : 'allow';
  return { id, label: truncateText(label.trim(), MAX_LABEL), kind, ...(LASTS.test(label) ? { isLasting: true } : {}) };
}

/** Lines above a choice, up to a larger gap, that may hold the question. */
function questionAbove(lines: readonly string[], at: number): string[] {
  const above: string[] = [];
  let blanks = 0;
  for (let line = at - 1; line >= 0 && above.length < MOST_QUESTION && blanks < 2; line -= 1) {
    const text = lines[line] ?? '';
    blanks = text.trim() === '' ? blanks + 1 : 0;
    above.unshift(text.trim());
  }
  return above.join('\n').trim().split('\n');
}

function titleOf(question: readonly string[]): string {
  const asks = question.findLast((line) => line.endsWith('?')) ?? question.findLast((line) => line !== '');
  return truncateText(asks ?? 'The terminal asks', MAX_LABEL);
}

/** Strips a drawn frame. */
function withoutBox(line: string): string {
  const inner = line.replace(/^\s*[│┃|]\s?/, '').replace(/\s*[│┃|]\s*$/, '');
  return /^[\s─━╭╮╰╯┌┐└┘═-]*$/.test(inner) ? '' : inner;
}
