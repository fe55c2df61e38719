import { EVERY_LINE, findHits } from '@interlude/protocol/projections/log-filter';
import type { Task, Turn } from '@interlude/protocol/read-models';
import { describe, expect, it } from 'vitest';
import { indentJson, jsonTailAt } from '@/components/logs/json-tail';
import { messagePieces, previewOf } from '@/components/logs/message-pieces';
import { inputParts } from '@/components/requests/input-parts';
import { isBoilerplate, namedTask } from '@/components/tasks/task-words';
import { lineDiff } from '@/components/transcript/line-diff';
import { quote } from '@/components/transcript/reply-link';
import { mainArgument, toolName } from '@/components/transcript/tool-words';
import { estimateTurnHeight } from '@/components/transcript/use-turn-rows';
import { ansiPieces, parseAnsi, stripAnsi } from '@/components/ui/ansi';
import { longRunClass, withBreaks } from '@/components/ui/line-breaks';
import { lookalikes } from '@/components/ui/lookalikes';
import { otherTarget, safeHref } from '@/components/ui/markdown/inline';
import { markdownWork } from '@/components/ui/markdown/parse';
import { decodeEntities, toPlainText } from '@/components/ui/plain-text';
import { endOfFirstProse, proseText } from '@/components/ui/prose';
import { endOfFirstPart, foldLines, lastPart } from '@/components/ui/truncate';
import { nameText, verbatimPieces } from '@/components/ui/verbatim';
import { verbatimPage } from '@/components/ui/verbatim-text';
import { hostileTexts } from '../support/hostile-texts';
import { cpuMs } from '../support/timing';

/** Every page function that scans text of an agent, by name. */
const SCANNERS: Record<string, (text: string) => unknown> = {
  parseAnsi: (text) => parseAnsi(text),
  stripAnsi,
  proseText,
  endOfFirstProse: (text) => endOfFirstProse(text, SIZE),
  ansiPieces,
  'verbatimPieces of lines': (text) => verbatimPieces(text, 'lines'),
  'verbatimPieces of a name': (text) => verbatimPieces(text, 'name'),
  'verbatimPieces of words': (text) => verbatimPieces(text, 'words'),
  verbatimPage: (text) => verbatimPage(text, 0, { characters: 60_000, lines: 2_000 }),
  nameText: (text) => nameText(text),
  lookalikes,
  inputParts: (text) => inputParts({ args: { text }, argsText: text }),
  longRunClass,
  plainWords: toPlainText,
  withBreaks,
  decodeEntities,
  safeHref,
  otherTarget: (text) => otherTarget('https://example.test/', text),
  markdownWork,
  foldLines,
  endOfFirstPart: (text) => endOfFirstPart(text, 4_000),
  shownMessage: (text) => previewOf(text, true),
  jsonTailAt,
  indentJson: (text) => (jsonTailAt(text) === 0 ? indentJson(text) : null),
  messagePieces: (text) => messagePieces(text),
  'messagePieces with a thousand hits': (text) =>
    messagePieces(
      text,
      Array.from({ length: 1_000 }, (_, index) => [index * 3, index * 3 + 1]),
    ),
  findHits: (text) => [...findHits({ ...EVERY_LINE, terms: ['a', '='] }, text)],
  'tellingArgument, whole': (text) => mainArgument({ name: 'Bash', args: { command: text }, argsText: '' }),
  'tellingArgument, streaming': (text) => mainArgument({ name: 'Bash', args: null, argsText: text }),
  lineDiff: (text) => lineDiff(text, text.replaceAll('a', 'b').slice(1)),
  'lineDiff, line by line': (text) => lineDiff(text.replaceAll('a', '\n'), text.slice(9).replaceAll('a', 'b\n')),
  toolName: (text) => toolName(`mcp__${text}`),
  quote: (text) => quote({ text }),
  isBoilerplate: (text) => isBoilerplate({ summary: `Background command "${text}` }),
  namedTask: (text) => namedTask({ description: text, id: 't' } as Task),
  estimateTurnHeight: (text) =>
    estimateTurnHeight({ kind: 'user', items: [{ kind: 'message', role: 'user', text }] } as unknown as Turn),
  lastPart: (text) => lastPart(text, { lines: 16, characters: 4_000 }),
};

const SIZE = 64 * 1024;
/** A faster scan isn't measured again. */
const ENOUGH_MS = 100;
/** Four times the text takes a linear scan four times as long, a quadratic one sixteen times. */
const MOST_TIMES = 9;
const MOST_ROUNDS = 5;

describe('scanning 64 KiB of hostile text', () => {
  const texts = hostileTexts(SIZE);
  const quarters = new Map(hostileTexts(SIZE / 4).map(({ name, text }) => [name, text]));
  it.each(Object.keys(SCANNERS))('%s takes linear time', (name) => {
    const scan = SCANNERS[name] as (text: string) => unknown;
    for (const { name: what, text } of texts) {
      const measure = (measured: string) => cpuMs(() => scan(measured));
      let took = measure(text);
      if (took < ENOUGH_MS) continue;
      let ofQuarter = Number.POSITIVE_INFINITY;
      // Other threads of this process, such as the garbage collector's, disturb single measurements.
      for (let round = 0; round < MOST_ROUNDS && !(took / ofQuarter < MOST_TIMES); round++) {
        ofQuarter = Math.min(ofQuarter, measure(quarters.get(what) as string));
        took = Math.min(took, measure(text));
      }
      expect(took / ofQuarter, `${name} over ${what}: ${took} ms`).toBeLessThan(MOST_TIMES);
    }
  });
});
