import { maskDigests } from '@interlude/protocol/redaction/redact-model';
import { expect, test } from 'vitest';

const mask = { request: (digest: string) => `r ${digest}`, attachment: (hash: string) => `a ${hash}` };

test('maskDigests masks digests and hashes at any depth', () => {
  const model = { requests: [{ digest: 'd' }], message: { attachments: [{ hash: 'h', name: 'n' }] }, digest: null };
  expect(maskDigests(model, mask)).toEqual({
    requests: [{ digest: 'r d' }],
    message: { attachments: [{ hash: 'a h', name: 'n' }] },
    digest: null,
  });
  expect(model.requests).toEqual([{ digest: 'd' }]);
});

test('maskDigests keeps free-form fields, and the same object if unchanged', () => {
  const model = {
    lines: [{ fields: { digest: 'd', hash: 'h' } }],
    input: { digest: 'd' },
    event: { type: 'CUSTOM', name: 'somebody:s', value: { digest: 'd' } },
  };
  expect(maskDigests(model, mask)).toBe(model);
  const known = { type: 'CUSTOM', name: 'request:opened', value: { digest: 'd', input: { digest: 'd' } } };
  expect(maskDigests(known, mask).value).toEqual({ digest: 'r d', input: { digest: 'd' } });
});
