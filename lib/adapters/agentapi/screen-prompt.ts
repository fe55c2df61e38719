import type { RequestOption } from '@/lib/protocol/ag-ui';
import { cutText } from '@/lib/protocol/cut-text';
import { withoutTrailing } from './agentapi-frames';

/**
 * A choice that a still terminal shows. Only what can't be anything else counts: a list that is numbered from 1, with one
 * of its entries marked, or a question that ends in its answers. A screen that stands still for any other reason is no
 * question.
 */
export interface ScreenPrompt {
  /** The question and its answers, without what surrounds them. The same words are the same prompt. */
  text: string;
  title: string;
  options: (RequestOption & { isMarked: boolean })[];
  /** How an answer is given: the mark is moved and confirmed, or a letter is typed. */
  keys: 'arrows' | 'letters';
}

/** Lines of the screen that are looked at, from its end. */
const MOST_LINES = 60;
const MOST_OPTIONS = 12;
const MOST_WRAPPED = 3;
const MOST_QUESTION = 12;
const MAX_LABEL = 400;

const OPTION = /^\s*(?:([❯>›→▸])\s*)?(\d{1,2})[.)]\s+(\S.*)$/;
const DENIES = /^(no\b|n$|den[yi]|reject|cancel|abort|don['’]?t|do not|skip|exit|quit|stop)/i;
const LASTS = /don['’]?t ask again|do not ask again|always|for this session|\ball\b/i;

export function promptOn(screen: string): ScreenPrompt | null {
  const lines = withoutTrailing(screen).split('\n').slice(-MOST_LINES).map(withoutBox);
  return listed(lines) ?? asked(lines);
}

function listed(lines: readonly string[]): ScreenPrompt | null {
  const last = lines.findLastIndex((line) => OPTION.test(line));
  if (last < 0) return null;
  const found: { at: number; mark: boolean; number: number; label: string }[] = [];
  for (let at = last; at >= 0 && found.length < MOST_OPTIONS; at -= 1) {
    const [, mark, number, label = ''] = OPTION.exec(lines[at] ?? '') ?? [];
    if (number === undefined) {
      // A long answer goes on in the next lines.
      if ((found.at(-1)?.at ?? last) - at > MOST_WRAPPED) break;
      continue;
    }
    found.push({ at, mark: mark !== undefined, number: Number(number), label });
    if (number === '1') break;
  }
  found.reverse();
  const first = found[0]?.at ?? 0;
  const isList = found.length >= 2 && found.every(({ number }, index) => number === index + 1);
  if (!isList || found.filter(({ mark }) => mark).length !== 1) return null;
  // Behind a choice stands at most a line of help, and no other words of the agent.
  if (lines.slice(last + 1).filter((line) => line.trim() !== '').length > MOST_WRAPPED) return null;
  const question = questionAbove(lines, first);
  const options = found.map(({ number, label, mark }) => ({ ...optionOf(String(number), label), isMarked: mark }));
  const text = [...question, ...found.map(({ number, label }) => `${number}. ${label}`)].join('\n').trim();
  return { text, title: titleOf(question), options, keys: 'arrows' };
}

/** `Continue? [y/N]`, `Run it? (Y)es/(N)o/(A)ll [Yes]:` */
function asked(lines: readonly string[]): ScreenPrompt | null {
  const at = lines.findLastIndex((line) => line.trim() !== '');
  const line = lines[at]?.trim() ?? '';
  const isYesNo = /[[(](y\/n|yes\/no)[\])]\s*:?$/i.test(line);
  const letters = /\[\w+\]\s*:$/.test(line) ? [...line.matchAll(/\((\w)\)([\w’' ]*)/g)] : [];
  if (!isYesNo && letters.length < 2) return null;
  const choices = isYesNo
    ? [
        ['y', 'Yes'],
        ['n', 'No'],
      ]
    : letters.map(([, key = '', rest = '']) => [key.toLowerCase(), key + rest]);
  const options = choices.map(([key = '', label = '']) => ({ ...optionOf(key, label.trim()), isMarked: false }));
  const text = [...questionAbove(lines, at), line].join('\n').trim();
  return { text, title: cutText(line, MAX_LABEL), options, keys: 'letters' };
}

function optionOf(id: string, label: string): RequestOption {
  const kind = DENIES.test(label.trim()) ? 'deny' : 'allow';
  return { id, label: cutText(label.trim(), MAX_LABEL), kind, ...(LASTS.test(label) ? { isLasting: true } : {}) };
}

/** The lines above, up to an empty stretch: what is asked about. */
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
  return cutText(asks ?? 'The terminal asks', MAX_LABEL);
}

/** Without the frame that is drawn around it. */
function withoutBox(line: string): string {
  const inner = line.replace(/^\s*[│┃|]\s?/, '').replace(/\s*[│┃|]\s*$/, '');
  return /^[\s─━╭╮╰╯┌┐└┘═-]*$/.test(inner) ? '' : inner;
}
