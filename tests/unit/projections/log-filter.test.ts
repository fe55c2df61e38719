import { MAX_LOG_MESSAGE_BYTES, MAX_REGEX_STEPS } from '@interlude/protocol/limits';
import {
  EVERY_LINE,
  findHits,
  foldText,
  joinHits,
  type LogFilter,
  matchesLine,
  parseTerms,
} from '@interlude/protocol/projections/log-filter';
import { compileLogRegex } from '@interlude/protocol/projections/log-regex';
import type { LogLine } from '@interlude/protocol/read-models';
import { RE2JS } from 're2js';
import { describe, expect, test, vi } from 'vitest';

function line(fields: Partial<LogLine> = {}): LogLine {
  return {
    position: '1',
    line: 1,
    occurredAt: 1000,
    level: 'info',
    component: 'hook',
    message: 'a message',
    ...fields,
  };
}

function regex(source: string): LogFilter['regex'] {
  const outcome = compileLogRegex(source);
  if (outcome.kind === 'refused') throw new Error(outcome.reason);
  return outcome.regex;
}

describe('terms', () => {
  test('are words, or phrases in quotes', () => {
    expect(parseTerms('  one\ttwo "a  phrase" three')).toEqual(['one', 'two', 'a  phrase', 'three']);
    expect(parseTerms('"not closed yet')).toEqual(['not closed yet']);
    expect(parseTerms('half"way in"side')).toEqual(['half', 'way in', 'side']);
  });

  test('are folded and distinct', () => {
    expect(parseTerms('Error ERROR error')).toEqual(['error']);
  });

  test('are empty for a blank query', () => {
    expect(parseTerms('')).toEqual([]);
    expect(parseTerms(' "" "  " " ')).toEqual([]);
  });
});

describe('folded text', () => {
  test('keeps the index of every character', () => {
    for (let code = 0; code <= 0x10ffff; code += 1) {
      const character = String.fromCodePoint(code);
      const folded = foldText(`${character}x`);
      if (folded.length !== character.length + 1) throw new Error(`U+${code.toString(16)} changes its length`);
      if (code > 0x7f && folded.charCodeAt(0) <= 0x7f) throw new Error(`U+${code.toString(16)} becomes ASCII`);
    }
  });

  test('does not depend on adjacent letters', () => {
    expect(foldText('ΟΔΟΣ').includes(foldText('ΟΔΟΣ'))).toBe(true);
    expect(foldText('ΟΔΟΣΑ').includes(foldText('ΟΔΟΣ'))).toBe(true);
    expect(foldText('İK').includes(foldText('K'))).toBe(true);
  });
});

describe('a line', () => {
  test('matches by level and component', () => {
    expect(matchesLine({ ...EVERY_LINE, level: 'info' }, line())).toBe(true);
    expect(matchesLine({ ...EVERY_LINE, level: 'warn' }, line())).toBe(false);
    expect(matchesLine({ ...EVERY_LINE, components: ['outbox', 'hook'] }, line())).toBe(true);
    expect(matchesLine({ ...EVERY_LINE, components: ['outbox'] }, line())).toBe(false);
  });

  test('matches by time, inclusively', () => {
    expect(matchesLine({ ...EVERY_LINE, from: 1000, to: 1000 }, line())).toBe(true);
    expect(matchesLine({ ...EVERY_LINE, from: 1001 }, line())).toBe(false);
    expect(matchesLine({ ...EVERY_LINE, to: 999 }, line())).toBe(false);
  });

  test('matches all terms and the regex', () => {
    const message = 'Request 7 FAILED';
    expect(matchesLine({ ...EVERY_LINE, terms: parseTerms('fail req') }, line({ message }))).toBe(true);
    expect(matchesLine({ ...EVERY_LINE, terms: parseTerms('fail reply') }, line({ message }))).toBe(false);
    expect(matchesLine({ ...EVERY_LINE, regex: regex('^Request \\d') }, line({ message }))).toBe(true);
    expect(matchesLine({ ...EVERY_LINE, terms: ['fail'], regex: regex('^failed') }, line({ message }))).toBe(false);
  });

  test('that is a marker matches any level and component; a retention marker no search', () => {
    const marker = { kind: 'retention', lines: 5, bytes: 10 } as const;
    const removed = line({ level: 'debug', component: 'interlude', message: '5 lines were removed', marker });
    expect(matchesLine({ ...EVERY_LINE, level: 'fatal', components: ['hook'] }, removed)).toBe(true);
    expect(matchesLine({ ...EVERY_LINE, terms: ['removed'] }, removed)).toBe(false);
    expect(matchesLine({ ...EVERY_LINE, regex: regex('.') }, removed)).toBe(false);
    expect(matchesLine({ ...EVERY_LINE, from: 2000 }, removed)).toBe(false);
  });
});

describe('a long line', () => {
  const finds = (source: string, message: string) =>
    matchesLine({ ...EVERY_LINE, regex: regex(source) }, line({ message }));
  const behind = (characters: number) => `${'a'.repeat(characters)}c`;

  test('is searched as far as the size of the regex allows', () => {
    const large = '[ab]{140}[cd]';
    const reach = Math.floor(MAX_REGEX_STEPS / RE2JS.compile(large, RE2JS.MULTILINE).programSize());
    expect(reach).toBeGreaterThan(8000);
    expect(reach).toBeLessThan(MAX_LOG_MESSAGE_BYTES / 2);
    expect(finds(large, behind(reach - 1))).toBe(true);
    expect(finds(large, behind(reach))).toBe(false);
    expect(finds('[ab]{50}[cd]', behind(MAX_LOG_MESSAGE_BYTES - 1))).toBe(true);
    expect(
      finds('(timeout|refused|reset) after \\d+ ms', `${behind(MAX_LOG_MESSAGE_BYTES - 20)} reset after 7 ms`),
    ).toBe(true);
  });

  test('is not split within a character', () => {
    const source = '[ab]{140}[^a😀]';
    const reach = Math.floor(MAX_REGEX_STEPS / RE2JS.compile(source, RE2JS.MULTILINE).programSize());
    expect(finds(source, `${'a'.repeat(reach - 1)}😀`)).toBe(false);
    expect(finds(source, `${'a'.repeat(reach - 1)}c`)).toBe(true);
  });

  test('keeps the engine’s cache bounded', () => {
    const compile = vi.spyOn(RE2JS, 'compile');
    let seed = 1;
    const random = () => {
      seed = (Math.imul(seed, 1_103_515_245) + 12_345) & 0x7fffffff;
      return (seed >> 16) & 1;
    };
    const message = Array.from({ length: MAX_LOG_MESSAGE_BYTES }, () => (random() ? 'a' : 'b')).join('');
    expect(finds('[^c]*a[^c]{140}[cd]', message)).toBe(false);
    const compiled = compile.mock.results[0]?.value as RE2JS;
    compile.mockRestore();
    const { stateCount } = compiled.re2().dfa;
    expect(stateCount).toBeGreaterThan(0);
    expect(stateCount).toBeLessThan(500);
  });
});

describe('hits', () => {
  const hitsIn = (filter: LogFilter, text: string) =>
    joinHits([...findHits(filter, text)].filter((hit) => hit !== null));

  test('are the ranges of the terms, joined if adjacent', () => {
    const marked = (filter: LogFilter, text: string) =>
      hitsIn(filter, text).map(([start, end]) => text.slice(start, end));
    expect(marked({ ...EVERY_LINE, terms: parseTerms('ab bc') }, 'xABCab')).toEqual(['ABCab']);
    expect(marked({ ...EVERY_LINE, terms: parseTerms('ab') }, 'ab AB aB x')).toEqual(['ab', 'AB', 'aB']);
    expect(marked({ ...EVERY_LINE, terms: parseTerms('istanbul') }, 'İstanbul ISTANBUL')).toEqual(['ISTANBUL']);
    expect(marked({ ...EVERY_LINE, terms: ['on'], regex: regex('\\d+') }, 'on 42 on 7')).toEqual([
      'on',
      '42',
      'on',
      '7',
    ]);
  });

  test('are empty without matches', () => {
    expect(hitsIn(EVERY_LINE, 'text')).toEqual([]);
    expect(hitsIn({ ...EVERY_LINE, regex: regex('x*') }, 'aaa')).toEqual([]);
  });

  test.each([
    ['hits that might each go to the end', 'a.*b|a', 'a'],
    ['empty ones that might', '(?:a.*b)?', 'a'],
    ['a large program', '(?i)[^x]{0,140}y|a', 'a'],
    ['digits', '\\d', '7'],
  ])('are found in bounded steps in a long line: %s', (_what, source, sign) => {
    const compile = vi.spyOn(RE2JS, 'compile');
    const filter = { ...EVERY_LINE, regex: regex(source) };
    const compiled = compile.mock.results[0]?.value as RE2JS;
    compile.mockRestore();
    const matcher = vi.spyOn(compiled, 'matcher');
    let finds = 0;
    for (const _ of findHits(filter, sign.repeat(1_000_000))) finds += 1;
    const looksAt = String(matcher.mock.calls[0]?.[0]).length;
    const steps = looksAt * compiled.programSize();
    expect(steps).toBeLessThanOrEqual(MAX_REGEX_STEPS / 4);
    expect(finds).toBeGreaterThan(10);
    expect((finds * steps) / 2).toBeLessThanOrEqual(4 * MAX_REGEX_STEPS);
  });
});
