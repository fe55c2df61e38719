import { describe, expect, it } from 'vitest';
import { redactModel } from '@/lib/redaction/redact-model';

describe('redactModel', () => {
  it('returns a value without secrets unchanged', async () => {
    const model = { position: '7', turns: [{ id: 'a', items: [{ text: 'all of it', args: { n: 1 } }] }] };
    expect(await redactModel(model, () => null)).toEqual({ ...model, redacted: 0 });
  });

  it('redacts a value by its key, and a secret in a key or an id, at any depth', async () => {
    const token = `gh${'p_'}0123456789abcdefghijABCDEFGHIJ0123456789`;
    const list = [{ id: token, password: 'w0rds-and-numb3rs', [token]: 1, deep: [[{ token: 'abc-def-1' }]] }];
    const { record, id, redacted } = (await redactModel({ record: { list }, id: token }, () => null)) as never as {
      [name: string]: unknown;
    };
    expect(id).toBe(token);
    expect(redacted).toBe(4);
    expect(record).toEqual({
      list: [
        {
          id: '[redacted: github-token]',
          password: '[redacted: password]',
          '[redacted: github-token]': 1,
          deep: [[{ token: '[redacted: token]' }]],
        },
      ],
    });
  });
});
