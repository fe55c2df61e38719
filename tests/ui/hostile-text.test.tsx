import { renderToStaticMarkup } from 'react-dom/server';
import { describe, expect, it } from 'vitest';
import { parseAnsi, stripAnsi } from '@/components/ui/ansi';
import { Blocks } from '@/components/ui/markdown/block';
import { safeHref } from '@/components/ui/markdown/inline';
import { Markdown } from '@/components/ui/markdown/markdown';
import { parseBlocks } from '@/components/ui/markdown/parse';

const html = (text: string, streaming = false) => renderToStaticMarkup(<Markdown text={text} streaming={streaming} />);
/** The result after all steps. */
const parsedHtml = (text: string) =>
  renderToStaticMarkup(<Blocks tokens={parseBlocks(text) ?? []} streaming={false} depth={0} />);

/** Depth of the element tree. */
function deepest(markup: string): number {
  let depth = 0;
  let most = 0;
  for (const [, closes, name = ''] of markup.matchAll(/<(\/?)(\w+)[^>]*>/g)) {
    if (closes) depth -= 1;
    else if (name !== 'br' && name !== 'hr') depth += 1;
    most = Math.max(most, depth);
  }
  return most;
}

describe('an agent’s text', () => {
  it.each([
    '<script>alert(1)</script>',
    '<img src=x onerror=alert(1)>',
    '<iframe src="https://evil.test"></iframe>',
    '<svg/onload=alert(1)>',
    '<a href="javascript:alert(1)">x</a>',
    '<style>*{display:none}</style>',
    'text <b onclick="alert(1)">inline</b> text',
    '<details open ontoggle=alert(1)>',
    '- item\n\n  <object data="x">',
    '| a |\n|---|\n| <img src=x onerror=alert(1)> |',
  ])('is never markup: %s', (text) => {
    for (const streaming of [false, true]) {
      expect(html(text, streaming)).not.toMatch(
        /<(?:script|img|iframe|svg|style|object|details|b)[\s/>]|<[^>]*\son\w+=/i,
      );
    }
  });

  it('shows HTML as text', () => {
    expect(html('<img src=x onerror=alert(1)>')).toContain('&lt;img src=x onerror=alert(1)&gt;');
  });

  it.each([
    'javascript:alert(1)',
    'JaVaScRiPt:alert(1)',
    'java\nscript:alert(1)',
    ' javascript:alert(1)',
    '\u0001javascript:alert(1)',
    'data:text/html,<script>alert(1)</script>',
    'vbscript:msgbox(1)',
    'file:///etc/passwd',
    'blob:https://x.test/1',
    '//evil.test/x',
    '/api/v1/sessions',
    'ftp://evil.test',
    'https:evil',
    '',
  ])('does not link to %j', (href) => {
    expect(safeHref(href)).toBeNull();
  });

  it.each([
    '[x](javascript:alert(1))',
    '[x](java&#10;script:alert(1))',
    '<javascript:alert(1)>',
    '[x][r]\n\n[r]: javascript:alert(1)',
  ])('has no link in %s', (text) => expect(html(text)).not.toContain('<a '));

  it('links to the web and to mail without a referrer', () => {
    expect(html('[docs](https://example.test/a?b=c)')).toMatch(
      /<a href="https:\/\/example\.test\/a\?b=c"[^>]*rel="noopener noreferrer nofollow"/,
    );
    expect(safeHref('mailto:a@b.test')).toBe('mailto:a@b.test');
  });

  it('turns images into links', () => {
    const markup = html('![chart](https://evil.test/pixel.png)');
    expect(markup).not.toContain('<img');
    expect(markup).toContain('image: chart');
  });

  it('survives nesting that would overflow the stack', () => {
    expect(parsedHtml(`${'>'.repeat(5_000)} deep`)).toContain('deep');
    expect(html(`${'*'.repeat(4_000)}x`)).toContain('x');
    expect(html(`${'['.repeat(3_000)}x`)).toContain('x');
  });

  it.each([
    ['quotes', `${'> '.repeat(500)}deep`],
    ['lists', `${'- '.repeat(500)}deep`],
    ['quoted lists', `${'> - '.repeat(250)}deep`],
    ['indented lists', Array.from({ length: 200 }, (_, level) => `${'  '.repeat(level)}- x`).join('\n')],
    ['emphasis', `${'*a **b '.repeat(300)}x${' b** a*'.repeat(300)}`],
  ])('nests no element more than 40 deep: %s', (_what, text) => {
    for (const streaming of [false, true]) expect(deepest(html(text, streaming))).toBeLessThan(40);
  });

  it('marks a table with thousands of cells as truncated', () => {
    const wide = parsedHtml(`|${'a|'.repeat(5_000)}\n|${'-|'.repeat(5_000)}\n|${'b|'.repeat(5_000)}`);
    expect(wide.match(/<th /g)).toHaveLength(50);
    expect(wide.match(/<td /g)).toHaveLength(50);
    expect(wide).toContain('Showing the beginning of 1 rows and 5,000 columns.');
    const long = parsedHtml(`| a |\n|---|\n${'| b |\n'.repeat(5_000)}`);
    expect(long.match(/<td /g)).toHaveLength(300);
    expect(html('| a |\n|---|\n| b |')).not.toContain('Showing the beginning of');
  });

  it('nests no links', () => {
    const markup = html('[![alt](http://a.test/i) and *![more](http://a.test/j)*](http://b.test/)');
    expect(markup.match(/<a /g)).toHaveLength(1);
    expect(markup).toContain('image: alt and <em>image: more</em>');
  });

  it('does not decode entities into markup', () => {
    expect(html('&lt;script&gt;alert(1)&lt;/script&gt;')).toContain('&lt;script&gt;');
  });
});

describe('a command’s output', () => {
  const ESC = '\u001b';

  it('renders colours as class names and text as text', () => {
    expect(parseAnsi(`${ESC}[1;31mFAIL${ESC}[0m <b>x</b>`)).toEqual([
      { text: 'FAIL', className: 'ansi-red ansi-bold' },
      { text: ' <b>x</b>', className: null },
    ]);
  });

  it.each([
    ['cursor movement', `a${ESC}[2J${ESC}[1;1Hb`, 'ab'],
    ['a window title', `a${ESC}]0;evil\u0007b`, 'ab'],
    ['a hyperlink', `${ESC}]8;;https://evil.test${ESC}\\click${ESC}]8;;${ESC}\\`, 'click'],
    ['a device string', `a${ESC}Pq#0;2${ESC}\\b`, 'ab'],
    ['an 8-bit control', 'a\u009b31mb', 'ab'],
    ['an escape that never ends', `a${ESC}]0;evil`, 'a'],
    ['a lone escape', `a${ESC}`, 'a'],
    ['a bell, a backspace, a null', 'a\u0007\u0008\u0000b', 'ab'],
    ['text turned around', 'a\u202eb', 'ab'],
    ['256 and true colours', `${ESC}[38;5;196ma${ESC}[48;2;1;2;3mb`, 'ab'],
  ])('drops %s', (_what, output, shown) => {
    expect(stripAnsi(output)).toBe(shown);
    expect(
      parseAnsi(output)
        .map((span) => span.text)
        .join(''),
    ).toBe(shown);
  });

  it('shows the final state of a progress bar', () => {
    expect(stripAnsi('10%\r50%\r100%\r\ndone\r\n')).toBe('100%\ndone\n');
  });
});
