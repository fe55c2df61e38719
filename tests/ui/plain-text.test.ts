import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeEntities, toPlainText } from '@/components/ui/plain-text';
import { hostileTexts } from '../support/hostile-texts';

describe('toPlainText', () => {
  it.each([
    ['**Done** — see [log](https://example.com/log)', 'Done — see log'],
    ['# Report\n\nAll *three* passed.', 'Report · All three passed.'],
    ['Fixed:\n- `a.ts`\n* b\n+ c', 'Fixed: a.ts b c'],
    ['1. first\n2. second', '1. first 2. second'],
    ['- [x] build\n- [ ] deploy', '☑ build ☐ deploy'],
    ['> > quoted\n> again', 'quoted again'],
    ['| Check | Result |\n|:--|--:|\n| lint | 3 failed |', 'Check Result · lint 3 failed'],
    ['Run this:\n```sh\nnpm test\n```\nThen wait.', 'Run this: npm test · Then wait.'],
    ['a\n\n---\n\nb', 'a · b'],
    ['Title\n=====\n\nwords', 'Title · words'],
    ['## Test suite passes\n9 passed', 'Test suite passes · 9 passed'],
    ['**Done.**\n\nReally?\n\nYes', 'Done. Really? Yes'],
    ['***very*** ~~not~~ **so *deep* it goes**', 'very not so deep it goes'],
    ['_see the log_ of __both of them__', 'see the log of both of them'],
    ['![chart](https://a.b/c.png) and ![](x)', 'chart and image'],
    ['[**bold** link](https://a.b/c_(d)) [ref][1]\n\n[1]: https://a.b', 'bold link ref'],
    ['<https://a.b/c>', 'https://a.b/c'],
    ['1 &lt; 2 &amp;&amp; 3&nbsp;&gt; 2', '1 < 2 && 3 > 2'],
    ['one<br>two', 'one two'],
    ['\\*not emphasis and \\_nor this', '*not emphasis and _nor this'],
    ['\\*so it is\\* and \\*that', 'so it is and *that'],
    ['**✅ Done:** 4 of 4', '✅ Done: 4 of 4'],
    // A truncated preview.
    ['All passed. **Next st', 'All passed. Next st'],
    ['Suite passes\n\n**9 passed, 0 fai', 'Suite passes · 9 passed, 0 fai'],
    ['All done. **✅ Not', 'All done. ✅ Not'],
    ['It says **“no', 'It says “no'],
    ['See [the log](https://exam', 'See the log'],
    ['Run `npm te', 'Run npm te'],
  ])('turns %j into %j', (markdown, words) => expect(toPlainText(markdown)).toBe(words));

  it.each([
    '2 * 3 * 4 = 24',
    '2**3**4',
    '__init__ and snake_case_name',
    'src/*.ts and lib/*.js',
    '**/*.ts and **/a/**',
    'a | b',
    'C:\\Users\\me\\file.txt',
    'issue #12 and -5 and 1. May',
    'array[0] (see above)',
    'a < b and c > d',
    'שלום, עולם!',
  ])('leaves %j as it is', (text) => expect(toPlainText(text)).toBe(text));

  it('keeps invisible and direction characters', () => {
    expect(toPlainText('**a\u202eb**')).toBe('a\u202eb');
    expect(toPlainText('a&#8238;b')).toBe('a\u202eb');
    expect(toPlainText('rm it\rall is well\r\n')).toBe('rm it\rall is well');
  });

  const marks = fc.constantFrom(
    ...'*_`~#>|[]()!\\&<-+=: \n\u00a01.xa'.split(''),
    '**',
    '&amp;',
    '](',
    '&#42;',
    '- [x] ',
  );
  const texts = fc.array(marks, { maxLength: 60 }).map((parts) => parts.join(''));

  it('is idempotent', () => {
    fc.assert(
      fc.property(fc.oneof(texts, fc.string({ unit: 'binary' })), (text) => {
        const words = toPlainText(text);
        expect(toPlainText(words)).toBe(words);
        expect(words).not.toMatch(/[\n`]/);
      }),
      { numRuns: 2_000 },
    );
  });

  it('is idempotent for a long text', () => {
    for (const { name, text } of hostileTexts(5_000)) {
      const words = toPlainText(text);
      expect(words.length, name).toBeLessThanOrEqual(1_001);
      expect(toPlainText(words), name).toBe(words);
    }
  });
});

describe('decodeEntities', () => {
  it.each([
    ['common names', '&lt;b&gt; &amp;amp; &quot;&apos; &copy; &hellip; &AMP;', '<b> &amp; "\' © … &'],
    ['rare names', '&alpha;&frac12;&CounterClockwiseContourIntegral;&there4;&semi;', 'α½∳∴;'],
    ['names of two characters', '&NotEqualTilde;', '≂̸'],
    ['numbers', '&#65;&#x1F600;&#x1f600;', 'A😀😀'],
    ['numbers of no character', '&#0;&#7;&#xD800;&#1114112;&#9999999;', '�����'],
    ['no entity', '&notit; &nonsense; &; &#; &#x; &#12345678; &amp &constructor; &__proto__;', null],
  ])('decodes %s', (_what, text, decoded) => {
    expect(decodeEntities(text)).toBe(decoded ?? text);
  });
});
