import { redactModel } from '@interlude/protocol/redaction/redact-model';
import { describe, expect, it } from 'vitest';

describe('redactModel', () => {
  it('returns a value without secrets unchanged', async () => {
    const model = { position: '7', turns: [{ id: 'a', items: [{ text: 'all of it', args: { n: 1 } }] }] };
    expect(await redactModel(model, () => null)).toEqual({ ...model, redacted: 0 });
  });

  it('redacts secrets marked by a sibling field, argument or column', async () => {
    const secret = 'Rk4vqTr7wLx2';
    for (const input of [
      { name: 'DB_PASSWORD', value: secret, tags: [{ a: 1 }] },
      { args: ['--password', secret], list: [{ a: 1 }] },
      { command: 'sshpass', args: ['-p', secret] },
      { op: 'replace', path: '/data/DB_PASSWORD', value: secret },
      { question: 'What is the password?', answer: secret },
      { columns: ['user', 'password'], rows: [['mara', secret]] },
    ]) {
      for (const [model, isFree] of [
        [{ input }, false],
        [input, true],
      ] as const) {
        expect(JSON.stringify(await redactModel(model, () => null, isFree))).not.toContain(secret);
      }
    }
  });

  it('yields within a list of many arguments', async () => {
    const args = Array.from({ length: 200 }, (_, index) => `${index} ${'password=x y '.repeat(315)}`);
    let turns = 0;
    await redactModel({ input: { args } }, () => {
      turns += 1;
      return null;
    });
    expect(turns).toBeGreaterThan(200);
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
