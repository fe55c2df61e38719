import fc from 'fast-check';
import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { diffOf, editsOf } from '@/components/transcript/edits';
import { type DiffChunk, lineDiff } from '@/components/transcript/line-diff';
import { EditCount } from '@/components/transcript/tool-call-line';
import { type DiffPlace, type DiffRow, diffSegments, nextRows } from '@/components/transcript/tool-diff';
import { ToolInput } from '@/components/transcript/tool-input';
import { zeroWidthCharacters } from '../support/hostile-texts';
import { renderedText } from '../support/rendered-text';
import { aCall } from './rows';

const shown = (name: string, args: unknown, argsText = '') =>
  renderToStaticMarkup(<ToolInput call={{ name, args, argsText }} />);
const count = (name: string, args: unknown) =>
  renderToStaticMarkup(<EditCount call={aCall({ name, args, argsText: '' })} />);

/** The visible lines of a kind. */
function linesOf(markup: string, tag: 'ins' | 'del' | 'div'): string[] {
  const line = new RegExp(
    `<${tag} class="flex min-h[^>]*>.*?<span class="verbatim[^>]*>([\\s\\S]*?)</span></${tag}>`,
    'g',
  );
  return [...markup.matchAll(line)].map(([, one]) => renderedText(one ?? ''));
}

const oneSide = (chunks: readonly DiffChunk[], other: DiffChunk['kind']) =>
  chunks
    .filter(({ kind }) => kind !== other)
    .map(({ text }) => text)
    .join('');

/** Texts that share lines, and end with a line break or not. */
const text = fc
  .tuple(
    fc.array(fc.constantFrom('a', 'b', 'c', '', '  ', 'a\r', '\u202eb', 'aa'), { maxLength: 12 }),
    fc.constantFrom('', '\n', '\n\n'),
  )
  .map(([lines, end]) => lines.join('\n') + end);

describe('lineDiff', () => {
  it('contains all of both texts, for any two texts', () => {
    fc.assert(
      fc.property(text, text, fc.constantFrom(0, 2, 500), (before, after, most) => {
        const chunks = lineDiff(before, after, most);
        const [old, now] = [oneSide(chunks, 'added'), oneSide(chunks, 'removed')];
        expect([before, `${before}\n`]).toContain(old);
        expect([after, `${after}\n`]).toContain(now);
        // A line break is added to both texts or to neither.
        if (before !== '' && after !== '') expect(old === before).toBe(now === after);
        for (const { text: lines, lines: count } of chunks) {
          expect(lines.endsWith('\n')).toBe(true);
          expect(lines.split('\n').length - 1).toBe(count);
        }
      }),
      { numRuns: 2_000 },
    );
  });

  it('changes as few lines as possible', () => {
    const changes = lineDiff('one\ntwo\nthree\nfour', 'one\n2\nthree\nfour\nfive').map(({ kind, text: lines }) => [
      kind,
      lines,
    ]);
    expect(changes).toEqual([
      ['same', 'one\n'],
      ['removed', 'two\n'],
      ['added', '2\n'],
      ['same', 'three\nfour\n'],
      ['added', 'five\n'],
    ]);
  });

  it.each([
    ['very many lines', 'a\n'.repeat(200_000), 'b\n'.repeat(200_000)],
    ['more changes than are lined up', 'a\nb\n'.repeat(4_000), 'b\na\nc\n'.repeat(3_000)],
  ])('shows both texts when a line diff would take too long: %s', (_what, before, after) => {
    const kinds = lineDiff(`first\n${before}last`, `first\n${after}last`).map(({ kind }) => kind);
    expect(kinds).toEqual(['same', 'removed', 'added', 'same']);
  });
});

describe('an edit', () => {
  const edit = { file_path: '/a/b.ts', old_string: 'keep\nold\nkeep too', new_string: 'keep\nnew\nnewer\nkeep too' };

  it('marks only the changes', () => {
    const markup = shown('Edit', edit);
    expect(linesOf(markup, 'del')).toEqual(['old']);
    expect(linesOf(markup, 'ins')).toEqual(['new', 'newer']);
    expect(linesOf(markup, 'div')).toEqual(['keep', 'keep too']);
    expect(markup).toContain('/a/b.ts');
  });

  it('counts added and removed lines, also in words', () => {
    expect(count('Edit', edit)).toMatch(/2 lines added, 1 removed.*\+2.*−1/);
    expect(count('Write', { file_path: 'a', content: 'one\ntwo\n' })).toMatch(/2 lines written.*\+2/);
    expect(count('Write', { file_path: 'a', content: 'one\ntwo\n' })).not.toContain('−');
    const { file_path: _, ...first } = edit;
    const edits = [first, { old_string: 'a', new_string: '' }];
    expect(count('MultiEdit', { file_path: 'a', edits })).toMatch(/2 lines added, 2 removed/);
    expect(count('Bash', { command: 'ls' })).toBe('');
  });

  it('shows added and removed line breaks, and a missing one at the end of a file', () => {
    expect(linesOf(shown('Edit', { old_string: 'a\n', new_string: 'a' }), 'del')).toEqual(['']);
    expect(linesOf(shown('Edit', { old_string: 'a\r\nb', new_string: 'a\nb' }), 'del')).toEqual(['a\r']);
    const note = 'No line break at the end of the file.';
    expect(shown('Write', { content: 'a' })).toContain(note);
    expect(shown('Write', { content: 'a\n' })).not.toContain(note);
    expect(shown('Write', { content: '' })).not.toContain(note);
    // An edit shows a part of a file, whose end is unknown.
    expect(shown('Edit', { old_string: 'a', new_string: 'b' })).not.toContain(note);
  });

  it('shows invisible characters as symbols, each on its own line', () => {
    const markup = shown('Edit', { old_string: 'ok', new_string: 'ok \u202e// nothing\u200b to see' });
    expect(markup).toContain('⟨RLO⟩');
    expect(markup).toContain('⟨ZWSP⟩');
    expect(linesOf(markup, 'ins')).toEqual(['ok \u202e// nothing\u200b to see']);
    expect(shown('Write', { content: '<img src=x onerror=alert(1)>' })).not.toContain('<img');
  });

  it('shows its other arguments, and its source if that says more', () => {
    expect(shown('Edit', { ...edit, replace_all: true })).toMatch(/replace_all.*true/);
    expect(renderedText(shown('Edit', { ...edit, command: 'rm -rf ~' }))).toContain('rm -rf ~');
    const twice = '{"old_string":"evil","old_string":"a","new_string":"b"}';
    expect(shown('Edit', JSON.parse(twice), twice)).toContain('evil');
    const edits = [
      { old_string: 'a', new_string: 'b', replace_all: true },
      { old_string: 'c', new_string: 'd' },
    ];
    expect(shown('MultiEdit', { edits })).toMatch(/Edit 1 of 2, every occurrence.*Edit 2 of 2/);
  });

  it.each([
    ['Edit', { old_string: null, new_string: 'x' }],
    ['Edit', ['old_string']],
    ['edit', edit],
    ['mcp__files__Edit', edit],
    ['MultiEdit', { edits: [] }],
    ['MultiEdit', { edits: [{ old_string: 'a', new_string: 'b', more: 1 }] }],
    ['MultiEdit', { edits: [null] }],
    ['Write', { content: 7 }],
    ['toString', { content: 'x' }],
  ])('with invalid arguments shows them verbatim: %s %j', (name, args) => {
    expect(editsOf({ name, args })).toBeNull();
    expect(shown(name, args)).toBe(shown('Bash', args));
  });

  it('shows very many lines in pages', () => {
    const content = Array.from(
      { length: 3_000 },
      (_, index) => `line ${index}${index % 500 === 0 ? 'x'.repeat(30_000) : ''}`,
    ).join('\n');
    const markup = shown('Write', { content });
    expect(markup.length).toBeLessThan(60_000);
    expect(markup).toMatch(/Show the next 500 of [23],\d{3} more lines/);
    expect(rowsOf('Write', { content })).toBe(`${content}\n`);
  });

  it.each([
    ['signs', { content: zeroWidthCharacters(200_000) }],
    ['short lines of signs', { content: `${zeroWidthCharacters(3)}\n`.repeat(50_000) }],
    ['line breaks', { content: '\n'.repeat(900_000) }],
    ['text from right to left', { content: 'אa'.repeat(200_000) }],
  ])('is a bounded number of elements: %s', (_what, args) => {
    expect(shown('Write', args).match(/<\w/g)?.length).toBeLessThan(2_500);
  });

  it('has a bounded number of elements', () => {
    const edits = Array.from({ length: 5_000 }, (_, index) => ({
      old_string: 'a\nb\n'.repeat(20),
      new_string: `b\n${index}\n`.repeat(20),
    }));
    expect(shown('MultiEdit', { edits }).match(/<\w/g)?.length).toBeLessThan(2_500);
  });

  it('folds unchanged lines except around a change', () => {
    const lines = Array.from({ length: 40 }, (_, index) => `line ${index}`);
    const after = lines.with(2, 'changed').with(39, 'changed');
    const args = { old_string: lines.join('\n'), new_string: after.join('\n') };
    expect(shown('Edit', args)).toContain('30 unchanged lines');
    expect(rowsOf('Edit', args, new Set(['0.3']))).toContain('line 20\n');
  });
});

/** All rows of a diff, page by page, as text. */
function rowsOf(name: string, args: object, opened: ReadonlySet<string> = new Set()): string {
  const edits = editsOf({ name, args });
  if (edits === null) throw new Error('no edits');
  const segments = diffSegments(diffOf(edits, args).chunks, opened);
  const rows: DiffRow[] = [];
  for (let place: DiffPlace | null = { segment: 0, offset: 0 }; place !== null; ) {
    const page = nextRows(segments, place, { characters: 5_000, lines: 70, pieces: 100 });
    expect(page.rows.length).toBeLessThanOrEqual(70);
    rows.push(...page.rows);
    place = page.end;
  }
  return rows
    .map((row) =>
      'pieces' in row
        ? (row.isContinuation ? '' : '\n') + row.pieces.map((piece) => piece.text).join('')
        : `\n(${row.kind})`,
    )
    .join('')
    .slice(1)
    .concat('\n');
}
