import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { canonicalJson } from '@interlude/protocol/json';
import { digestOf, requestDigest } from '@interlude/protocol/request-digest';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';

/** The value with the keys of all its objects the other way round. */
function turned(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(turned);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, entry]) => [key, turned(entry)]),
  );
}

const asSent = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

describe('canonical JSON', () => {
  it('follows RFC 8785', () => {
    const numbers = JSON.parse('[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001,-0]');
    const string = '\u20ac$\u000f\u000aA\'B"\\\\"/';
    const literals = [null, true, false];
    expect(canonicalJson({ numbers, string, literals })).toBe(
      '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27,0],"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    );
    const keys = { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, '\u00f6': 7 };
    expect(Object.values(JSON.parse(canonicalJson(keys))).join('')).toHaveLength(7);
    expect([...canonicalJson(keys).matchAll(/:(\d)/g)].map(([, at]) => at).join('')).toBe('2467153');
  });

  it('is unique per value, independent of key order', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (one, other) => {
        expect(canonicalJson(turned(one))).toBe(canonicalJson(one));
        expect(JSON.parse(canonicalJson(one))).toEqual(asSent(one));
        expect(canonicalJson(one) === canonicalJson(other)).toBe(isDeepStrictEqual(asSent(one), asSent(other)));
      }),
    );
  });

  it('omits undefined and replaces half a surrogate pair', () => {
    expect(canonicalJson({ a: undefined, b: [undefined, Number.NaN], c: () => 1 })).toBe('{"b":[null,null],"c":null}');
    expect(canonicalJson({ 'x\ud83d': 'deploy \ud83d' })).toBe('{"x\ufffd":"deploy \ufffd"}');
  });
});

describe('the digest of a request', () => {
  const request = { sessionId: 's', requestId: 'q', tool: 'Bash', input: { command: 'ls', n: 1 }, position: '41' };

  it('is the SHA-256 of the canonical JSON as UTF-8', () => {
    const text = '{"input":{"command":"ls","n":1},"position":"41","requestId":"q","sessionId":"s","tool":"Bash"}';
    expect(requestDigest(request)).toBe(createHash('sha256').update(text).digest('hex'));
    expect(digestOf('€ 🌍')).toBe(createHash('sha256').update('"€ 🌍"').digest('hex'));
  });

  it('changes with every field', () => {
    const yes = { id: 'y', label: 'Yes', kind: 'allow' as const };
    const others = [
      { ...request, sessionId: 't' },
      { ...request, requestId: 'p' },
      { ...request, tool: null },
      { ...request, input: { command: 'ls', n: '1' } },
      { ...request, input: { command: 'ls ', n: 1 } },
      { ...request, input: null },
      { ...request, position: '42' },
      { ...request, options: [yes] },
      { ...request, options: [{ ...yes, label: 'Sure' }] },
      { ...request, options: [{ ...yes, isLasting: true as const }] },
    ];
    const digests = [request, ...others].map(requestDigest);
    expect(new Set(digests).size).toBe(digests.length);
    expect(requestDigest({ ...request, options: [] })).toBe(requestDigest(request));
    expect(requestDigest({ ...request, input: undefined })).toBe(requestDigest({ ...request, input: null }));
  });
});
