import { expect, it } from 'vitest';
import { decodeEntities } from '@/components/ui/plain-text';

it.each([
  ['what everybody knows', '&lt;b&gt; &amp;amp; &quot;&apos; &copy; &hellip; &AMP;', '<b> &amp; "\' © … &'],
  ['rare names', '&alpha;&frac12;&CounterClockwiseContourIntegral;&there4;&semi;', 'α½∳∴;'],
  ['names of two signs', '&NotEqualTilde;', '≂̸'],
  ['numbers', '&#65;&#x1F600;&#x1f600;', 'A😀😀'],
  ['numbers that are no sign', '&#0;&#7;&#xD800;&#1114112;&#9999999;', '�����'],
  ['what is none', '&notit; &nonsense; &; &#; &#x; &#12345678; &amp &constructor; &__proto__;', null],
])('decodes %s', (_what, text, decoded) => {
  expect(decodeEntities(text)).toBe(decoded ?? text);
});
