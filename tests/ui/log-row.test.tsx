import type { LogLine } from '@interlude/protocol/read-models';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { FirstLines } from '@/components/logs/first-lines';
import { indentJson, jsonTailAt } from '@/components/logs/json-tail';
import { LineSearch } from '@/components/logs/line-search';
import { markerText, plainLine } from '@/components/logs/log-format';
import type { FirstLog } from '@/components/logs/log-query';
import { filterOf, type LogQuery, paramsFromQuery, queryFromParams, UNFILTERED } from '@/components/logs/log-query';
import { LogRow } from '@/components/logs/log-row';
import { fieldTime, formatLogTime, timeFromField } from '@/components/logs/log-settings';
import { messagePieces, previewOf } from '@/components/logs/message-pieces';
import { formatBinaryBytes } from '@/components/ui/format-size';

const ESC = '\u001b';
const SETTINGS = { isRelative: false, isUtc: true, wraps: false, dims: false };

function aLine(fields: Partial<LogLine> = {}): LogLine {
  return { position: '7', line: 3, occurredAt: 1_000, level: 'info', component: 'mirror', message: 'ready', ...fields };
}

function row(line: Partial<LogLine>, query: Partial<LogQuery> = {}, isUnfolded = false): string {
  const search = query.text === undefined ? null : filterOf({ ...UNFILTERED, ...query }, null);
  return renderToStaticMarkup(
    <LogRow
      line={aLine(line)}
      settings={SETTINGS}
      search={search && new LineSearch(search, false)}
      isCursor={false}
      isTarget={false}
      isInSpan={false}
      isUnfolded={isUnfolded}
      onLine={() => {}}
      onUnfold={() => {}}
      onContext={null}
      hasLinks
    />,
  );
}

describe('a log line', () => {
  it('is never markup', () => {
    for (const text of ['<img src=x onerror=alert(1)>', '<script>alert(1)</script>', '</div><b onclick=x>']) {
      const markup = row({ message: text, component: text }, { text: 'alert' });
      expect(markup).not.toMatch(/<(?:img|script|b)[\s>]/);
      expect(row({ message: text })).toContain('&lt;');
    }
  });

  it('states its level in words, whatever its colour', () => {
    for (const level of ['debug', 'info', 'warn', 'error', 'fatal'] as const) {
      expect(row({ level })).toContain(`>${level}</span>`);
    }
  });

  it('marks hits in any case and across colours', () => {
    expect(row({ message: `the ${ESC}[31mOutbox${ESC}[0m is full` }, { text: 'outbox full' })).toMatch(
      /<mark class="log-hit ansi-red">Outbox<\/mark>.* is .*<mark class="log-hit">full<\/mark>/,
    );
  });

  it('names a failed hook and its message', () => {
    const markup = row({ level: 'fatal', component: 'hook:stop', message: 'exit status 2' });
    expect(markup).toContain('Hook stop failed: ');
    expect(markup).toContain('exit status 2');
  });

  it('isolates the direction of its message from its component', () => {
    expect(row({ message: 'مرحبا بالعالم!' })).toContain('<bdi>مرحبا بالعالم!</bdi>');
  });

  it('counts redacted secrets', () => {
    expect(row({ redacted: 1 })).toContain('1 secret removed');
    expect(row({ redacted: 3 })).toContain('3 secrets removed');
    expect(row({})).not.toContain('removed');
  });

  it('unfolds trailing JSON', () => {
    const message = 'sent {"a":[1,{"b":null}],"c":{}}';
    expect(row({ message })).toContain('aria-label="Unfold the JSON"');
    expect(row({ message }, {}, true)).toContain('sent\n{\n  &quot;a&quot;: [\n    1,\n');
  });

  it('has a bounded number of elements, whatever its content and the search', () => {
    for (const message of ['a\0', `${ESC}[31ma${ESC}[42;1mb`, `${ESC}[2Ja`, 'ab']) {
      const markup = row({ message: message.repeat(2_000) }, { text: 'a' });
      expect(markup.match(/<\w/g)?.length).toBeLessThan(100);
      expect(markup).toMatch(/more characters/);
      expect(row({ message: message.repeat(2_000) }, { text: 'a' }, true).match(/<\w/g)?.length).toBeLessThan(3_100);
    }
    expect(previewOf('a漢'.repeat(2_000), false).text).toBe('a漢'.repeat(30).slice(0, -1));
    expect(previewOf('a\0'.repeat(2_000), false)).toEqual({
      text: `${'a\0'.repeat(15)}a`,
      rest: '3,969 more characters',
    });
  });

  it('shows the beginning of a long message and the length of the rest', () => {
    expect(row({ message: Array.from({ length: 40 }, (_, index) => `at ${index}`).join('\n') })).toContain(
      '28 more lines',
    );
    expect(row({ message: 'x'.repeat(5_000) })).toContain('4,000 more characters');
    expect(row({ message: 'x'.repeat(5_000) }, {}, true)).toContain('x'.repeat(5_000));
  });
});

describe('terminal controls in a message', () => {
  it.each([
    ['cursor movement', `a${ESC}[2Jb`, 'a␛[2Jb'],
    ['a window title', `a${ESC}]0;evil\u0007b`, 'a␛]0;evil␇b'],
    ['a hyperlink', `${ESC}]8;;https://evil.test${ESC}\\click`, '␛]8;;https://evil.test␛\\click'],
    ['what only ends like a colour', `a${ESC}[1 /*mb`, 'a␛[1 /*mb'],
    ['an escape that never ends', `a${ESC}]0;evil`, 'a␛]0;evil'],
    ['a lone escape', `a${ESC}`, 'a␛'],
    ['a bell, a backspace, a null', 'a\u0007\u0008\u0000b', 'a␇␈␀b'],
    ['an 8-bit control', 'a\u009bz', 'a⟨9B⟩z'],
    ['a line that overwrites itself', '10%\r100%\r\ndone\r', '10%␍100%\ndone'],
    ['text turned around', 'a\u202eb', 'a⟨202E⟩b'],
    ['half a character', 'a\ud800b', 'a⟨D800⟩b'],
    ['colours', `${ESC}[1;31mred${ESC}[0m`, 'red'],
    ['tabs and line ends', 'a\tb\nc', 'a\tb\nc'],
    ['a whole character of two halves', '👋', '👋'],
  ])('is shown, not obeyed: %s', (_what, message, shown) => {
    const pieces = messagePieces(message).map(({ text }) => text);
    expect(pieces.join('')).toBe(shown);
  });

  it('can’t be mistaken for text', () => {
    expect(messagePieces(`a${ESC}[2J`).map(({ isControl }) => isControl)).toEqual([false, true]);
    expect(messagePieces('a␛[2J').map(({ isControl }) => isControl)).toEqual([false]);
  });
});

describe('JSON in a message', () => {
  it.each([
    ['{"a":1}', 0],
    ['[1,2]', 0],
    ['POST {"a":1}', 5],
    ['body={"a":1}\n', 5],
    ['[mirror] sent {"a":"}"}', 14],
    ['no JSON {here}', null],
    ['{broken', null],
    ['plain', null],
    ['', null],
  ])('begins where it begins: %j', (message, at) => expect(jsonTailAt(message)).toBe(at));

  it('keeps numbers, order and duplicate keys as written', () => {
    expect(indentJson('{"n":12345678901234567890,"b":1.0,"b":"\\u0041 {x}","e":[],"o":{ }}')).toBe(
      '{\n  "n": 12345678901234567890,\n  "b": 1.0,\n  "b": "\\u0041 {x}",\n  "e": [],\n  "o": {}\n}',
    );
  });

  it('is indented at any depth without recursion', () => {
    const depth = 20_000;
    expect(indentJson('['.repeat(depth) + ']'.repeat(depth))).toContain(`${'  '.repeat(40)}[`);
  });
});

describe('formats', () => {
  it('split no surrogate pair', () => {
    const { text } = previewOf(`${'x'.repeat(999)}👋 and more`, false);
    expect(text).toBe('x'.repeat(999));
  });

  it('include the day unless it is today', () => {
    const at = Date.UTC(2026, 10, 21, 14, 3, 12, 45);
    expect(formatLogTime(at, true, at + 1_000)).toBe('14:03:12.045');
    expect(formatLogTime(at, true, at + 86_400_000)).toBe('11-21 14:03:12.045');
    expect(formatLogTime(9e18, true, at)).toBe('??:??:??.???');
  });

  it('round-trip through a form field', () => {
    const at = Date.UTC(2026, 10, 21, 14, 3, 12);
    for (const isUtc of [true, false]) expect(timeFromField(fieldTime(at, isUtc), isUtc)).toBe(at);
    expect(timeFromField('', true)).toBeNull();
  });

  it('show who changed the level, and how many lines were removed', () => {
    expect(markerText({ kind: 'level', level: 'debug', previous: 'info', by: 'ada' })).toBe(
      'level info → debug, by ada',
    );
    expect(markerText({ kind: 'retention', lines: 12_034, bytes: 3_400_000 })).toBe(
      '12,034 older lines removed by retention (3.2 MiB)',
    );
    expect(formatBinaryBytes(268_435_456)).toBe('256 MiB');
  });

  it('copy a line in the format of the runner’s file', () => {
    expect(plainLine(aLine({ level: 'warn' }))).toBe('[1970-01-01T00:00:01.000Z] WARN  [mirror] ready');
  });
});

describe('a log query', () => {
  it.each<LogQuery>([
    UNFILTERED,
    { ...UNFILTERED, level: 'warn', components: ['a b', 'ü&c'], text: 'x "y z"' },
    { ...UNFILTERED, text: '^a+(b|c)$', isRegex: true, from: 5, to: 1_795_170_167_743 },
    { ...UNFILTERED, isRegex: true },
  ])('round-trips through a URL: %j', (query) => {
    expect(queryFromParams(new URLSearchParams(paramsFromQuery(query).toString()))).toEqual(query);
  });
});

describe('lines in the server’s markup', () => {
  const written = (message: string) =>
    renderToStaticMarkup(
      <FirstLines
        first={{ query: UNFILTERED, page: { lines: [aLine({ message })] } as unknown as FirstLog['page'], readAt: 0 }}
        onPainted={() => {}}
      />,
    );

  it('have their final length, cut or wrapped', () => {
    const long = written('word '.repeat(500));
    expect(long).toContain('more characters');
    const wrapped = long.slice(long.indexOf('only-where-wrapped'));
    expect(wrapped).not.toContain('more characters');
    expect(written('ready')).not.toContain('only-where-wrapped');
  });

  it('show an unfold button on a wrapped line only if text is hidden', () => {
    expect(written('word '.repeat(30))).toMatch(/aria-label="Unfold the line" class="[^"]*only-where-cut/);
    expect(written('The answer is {"a":1,"b":{"c":[1,2,3]}}')).not.toContain('only-where-cut');
  });
});
