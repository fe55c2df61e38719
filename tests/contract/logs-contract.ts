import type { LogComponentList, LogPage } from '@interlude/protocol/read-models';
import { LOG_LEVELS } from '@interlude/protocol/vocabulary';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorOf, ingest, record } from '../support/ingest-target';
import type { ServerTarget } from '../support/server-target';

/** The routes of an agent's log. Each test has its own agent and producer. */
export function describeLogsContract(name: string, makeTarget: () => Promise<ServerTarget>): void {
  describe(`an agent’s log, ${name}`, () => {
    let target: ServerTarget;
    let serial = 0;
    let id = '';
    let seq = 0;

    beforeAll(async () => {
      target = await makeTarget();
    });
    afterAll(() => target.close());
    const test = (title: string, run: () => Promise<void>) =>
      it(title, async () => {
        serial += 1;
        id = `log-${serial}`;
        seq = 0;
        await run();
      });

    const T0 = 1_795_170_000_000;
    type Fields = { level?: string; component?: string; at?: number; marker?: object };
    const line = (message: string, { level = 'info', component = 'c', at, marker }: Fields = {}) => ({
      kind: 'log',
      ...(at === undefined ? {} : { occurredAt: T0 + at }),
      log: { level, component, message, marker },
    });
    async function send(...records: Record<string, unknown>[]) {
      const own = records.map((fields) => record(++seq, { agentId: id, ...fields }));
      return ingest(target, own, 1, `outbox-${id}`);
    }
    const numbered = (count: number) => Array.from({ length: count }, (_, index) => line(`line ${index}`));

    async function read<T = LogPage>(query = '', path = 'logs'): Promise<T> {
      const response = await target.get(`/api/v1/agents/${id}/${path}${query && `?${query}`}`);
      const body = await response.json();
      if (response.status !== 200) throw new Error(JSON.stringify(body));
      return body as T;
    }
    const texts = (page: LogPage) => page.lines.map(({ message }) => message);
    const found = async (query: string) => texts(await read(query));
    async function refusal(query: string) {
      const response = await target.get(`/api/v1/agents/${id}/logs?${query}`);
      return { ...(await errorOf(response)), status: response.status } as Record<string, unknown> & { message: string };
    }

    describe('a page', () => {
      test('is the newest by default, and leads on from any line in both directions', async () => {
        await send(...numbered(10));
        const newest = await read('limit=3');
        expect([texts(newest), newest.hasMore, newest.hasNewer]).toEqual([['line 7', 'line 8', 'line 9'], true, false]);
        const older = await read(`limit=3&before=${newest.lines[0]?.position}`);
        expect([texts(older), older.hasMore, older.hasNewer]).toEqual([['line 4', 'line 5', 'line 6'], true, true]);
        const newer = await read(`limit=2&after=${older.lines[0]?.position}`);
        expect([texts(newer), newer.hasMore, newer.hasNewer]).toEqual([['line 5', 'line 6'], true, true]);
        const last = await read(`after=${newest.lines[0]?.position}`);
        expect([texts(last), last.hasMore, last.hasNewer]).toEqual([['line 8', 'line 9'], false, false]);
        const first = await read(`before=${older.lines[0]?.position}`);
        expect([texts(first), first.hasMore]).toEqual([['line 0', 'line 1', 'line 2', 'line 3'], false]);
      });

      test('returns the bounds of the log for any filter', async () => {
        await send(...numbered(10));
        const { log, lines } = await read('limit=2&q=4');
        expect(log).toEqual({ firstLine: 1, lastLine: 10, lines: 10, bytes: 60 });
        expect(lines.map((one) => one.line)).toEqual([5]);
        await send({ kind: 'status', status: {} });
        expect(Number((await read()).position)).toBeGreaterThan(Number(lines[0]?.position));
      });

      test('is empty for an agent without lines', async () => {
        await send({ kind: 'status', status: {} });
        const page = await read();
        expect([page.lines, page.hasMore, page.hasNewer]).toEqual([[], false, false]);
        expect(page.log).toEqual({ firstLine: 1, lastLine: 0, lines: 0, bytes: 0 });
        expect(await read<LogComponentList>('', 'logs/components')).toMatchObject({ components: [] });
        for (const place of ['before=5', 'after=5', 'around=5', 'line=5', 'at=5'])
          expect(await found(place)).toEqual([]);
      });

      test('centers on a line, or on the next one that exists', async () => {
        await send(...numbered(10));
        await send({ kind: 'status', status: {} });
        const { lines } = await read();
        const around = await read(`limit=4&around=${lines[5]?.position}`);
        expect([texts(around), around.hasMore, around.hasNewer]).toEqual([
          ['line 3', 'line 4', 'line 5', 'line 6'],
          true,
          true,
        ]);
        const first = await read('limit=4&around=0');
        expect([texts(first), first.hasMore, first.hasNewer]).toEqual([['line 0', 'line 1'], false, true]);
        expect(await found(`limit=4&around=${lines[9]?.position}`)).toEqual(['line 6', 'line 7', 'line 8', 'line 9']);
        expect(await found('limit=2&around=9007199254740991')).toEqual(['line 8', 'line 9']);
        const even = await read(`limit=4&q=e&around=${lines[5]?.position}&regex=[02468]$`);
        expect([texts(even), even.hasMore, even.hasNewer]).toEqual([
          ['line 2', 'line 4', 'line 6', 'line 8'],
          true,
          false,
        ]);
      });

      test('centers on a line number, or on the next line that passes', async () => {
        await send(...numbered(10));
        expect(await found('limit=4&line=6')).toEqual(['line 3', 'line 4', 'line 5', 'line 6']);
        expect(await found('limit=4&line=1')).toEqual(['line 0', 'line 1']);
        expect(await found('limit=2&line=4000')).toEqual(['line 8', 'line 9']);
        expect(await found('limit=2&line=4&regex=[02468]$')).toEqual(['line 2', 'line 4']);
      });

      test('centers on a time with the first line not older', async () => {
        await send(...[10, 20, 40, 30, 50, 60].map((at) => line(`at ${at}`, { at })));
        expect(await found(`limit=2&at=${T0 + 35}`)).toEqual(['at 20', 'at 40']);
        expect(await found(`limit=2&at=${T0 + 50}`)).toEqual(['at 30', 'at 50']);
        expect(await found(`limit=2&at=0`)).toEqual(['at 10']);
        expect(await found(`limit=2&at=${T0 + 61}`)).toEqual(['at 50', 'at 60']);
      });
    });

    describe('a filter', () => {
      test('passes a level and those above it', async () => {
        await send(...LOG_LEVELS.map((level) => line(level, { level })));
        for (const [index, level] of LOG_LEVELS.entries())
          expect(await found(`level=${level}`)).toEqual(LOG_LEVELS.slice(index));
      });

      test('passes any of its components', async () => {
        await send(
          line('1', { component: 'hook' }),
          line('2', { component: 'outbox' }),
          line('3', { component: 'é"' }),
        );
        expect(await found('component=hook')).toEqual(['1']);
        expect(await found(`component=hook&component=${encodeURIComponent('é"')}`)).toEqual(['1', '3']);
        expect(await found('component=')).toEqual([]);
        const list = await read<LogComponentList>('', 'logs/components');
        expect(list.components).toEqual([
          { name: 'hook', lines: 1 },
          { name: 'outbox', lines: 1 },
          { name: 'é"', lines: 1 },
        ]);
      });

      test('passes a time range, including both ends', async () => {
        await send(...[10, 20, 30, 40].map((at) => line(`at ${at}`, { at })));
        expect(await found(`from=${T0 + 20}&to=${T0 + 30}`)).toEqual(['at 20', 'at 30']);
        expect(await found(`from=${T0 + 31}`)).toEqual(['at 40']);
        expect(await found(`to=${T0 + 9}`)).toEqual([]);
      });

      test('passes markers of any level, unless it searches text', async () => {
        const marker = { kind: 'level', level: 'debug', previous: 'info', by: 'operator' };
        await send(line('one', { level: 'error' }), line('now debug', { marker }), line('two', { level: 'debug' }));
        expect(await found('level=error&component=c')).toEqual(['one', 'now debug']);
        expect(await found('level=fatal&component=x')).toEqual(['now debug']);
        expect(await found('q=two')).toEqual(['two']);
        expect((await read('level=fatal')).lines[0]?.marker).toEqual(marker);
      });

      test('finds all words in any order, anywhere in the message and in any case', async () => {
        await send(
          line('Request FAILED with code 500'),
          line('request sent'),
          line('the code failed'),
          line('100% of A_b\\c "quoted"'),
          line('ΟΔΟΣ und Straße, İstanbul, 中文日志'),
        );
        expect(await found('q=failed%20REQ')).toEqual(['Request FAILED with code 500']);
        expect(await found('q=code')).toEqual(['Request FAILED with code 500', 'the code failed']);
        expect(await found('q=%22code+failed%22')).toEqual(['the code failed']);
        expect(await found('q=%22failed+code')).toEqual([]);
        expect(await found(`q=${encodeURIComponent('100% a_B\\C')}`)).toHaveLength(1);
        expect(await found('q=0_')).toEqual([]);
        for (const text of ['οδος', 'STRASSE', 'straße', 'İSTANBUL', '中文', '日志']) {
          expect([text, await found(`q=${encodeURIComponent(text)}`)]).toEqual([
            text,
            text === 'STRASSE' ? [] : ['ΟΔΟΣ und Straße, İstanbul, 中文日志'],
          ]);
        }
        expect(await found('q=')).toHaveLength(5);
        expect(await found('q=%00')).toEqual([]);
      });

      test('finds an RE2 regular expression, with words and without', async () => {
        await send(line('took 9 ms'), line('took 950 ms'), line('first\ntook 999 ms'), line('Took 951 ms'));
        expect(await found(`regex=${encodeURIComponent('^took 9\\d\\d ms$')}`)).toEqual([
          'took 950 ms',
          'first\ntook 999 ms',
        ]);
        expect(await found(`regex=${encodeURIComponent('(?i)TOOK 95')}`)).toEqual(['took 950 ms', 'Took 951 ms']);
        expect(await found(`q=951&regex=${encodeURIComponent('9\\d+')}`)).toEqual(['Took 951 ms']);
        expect(await found('regex=')).toHaveLength(4);
      });

      test('passes only lines that pass each of its conditions', async () => {
        const levels = ['debug', 'error'];
        await send(
          ...Array.from({ length: 24 }, (_, n) =>
            line(`job ${n}`, { level: levels[n % 2], component: n % 3 === 0 ? 'hook' : 'outbox', at: n }),
          ),
        );
        const query = `level=warn&component=hook&q=job&regex=1&from=${T0 + 4}&to=${T0 + 20}`;
        expect(await found(query)).toEqual(['job 15']);
      });
    });

    describe('refuses', () => {
      test('an unknown level, with the list of levels', async () => {
        await send(line('x'));
        const refused = await refusal('level=loud');
        expect(refused).toMatchObject({
          status: 400,
          code: 'invalid_argument',
          level: 'loud',
          levels: [...LOG_LEVELS],
        });
        expect(refused.message).toContain('debug, info, warn, error, fatal');
      });

      test('an invalid or unbounded regex, with the reason', async () => {
        await send(line('x'));
        const reasons: Record<string, RegExp> = {
          '(': /^missing closing \): `\(`$/,
          '(?=x)': /unsupported Perl syntax/,
          '(a)\\1': /invalid escape sequence/,
          '(((a{100}){100}){100})': /invalid repeat count/,
          '(a{99}){9}': /too big/,
          [`${'x'.repeat(1001)}`]: /longer than 1000/,
        };
        for (const [regex, reason] of Object.entries(reasons)) {
          const refused = await refusal(`regex=${encodeURIComponent(regex)}`);
          expect(refused).toMatchObject({ status: 400, code: 'invalid_argument' });
          expect(refused.reason).toMatch(reason);
          expect(refused.message).toContain(String(refused.reason));
        }
      });

      test('an impossible page', async () => {
        await send(line('x'));
        const queries = [
          'before=x',
          'after=-1',
          'limit=1001',
          'limit=0',
          'before=1&after=1',
          'around=1&at=1',
          'at=soon',
          'line=0',
          'line=first',
          'line=1&before=1',
        ];
        for (const query of [...queries, 'from=1.5', 'to=', `q=${'x'.repeat(1001)}`]) {
          expect([query, await refusal(query)]).toMatchObject([query, { status: 400, code: 'invalid_argument' }]);
        }
      });

      test('an unknown parameter', async () => {
        await send(line('x'));
        const refused = await refusal('search=x');
        expect(refused).toMatchObject({ status: 400, code: 'invalid_argument', search: 'x' });
        expect(refused.message).toContain('level, component, q, regex, from, to');
      });

      test('an unknown agent', async () => {
        for (const path of ['logs', 'logs/components']) {
          expect((await target.get(`/api/v1/agents/${id}/${path}`)).status).toBe(404);
        }
      });
    });

    describe('the download', () => {
      test('has every line that passes the filter in the runner’s format, one each', async () => {
        await send(
          ...Array.from({ length: 1500 }, (_, n) => line(`line ${n}`, { at: n, level: n % 2 ? 'warn' : 'info' })),
          line('first\r\n  second\tx \u001b[31mred\u001b[0m \u001b]0;title\u0007', {
            component: 'hook',
            level: 'fatal',
          }),
        );
        const response = await target.get(`/api/v1/agents/${id}/logs/download?level=warn`);
        expect(response.status).toBe(200);
        expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
        expect(response.headers.get('content-disposition')).toContain(`attachment; filename="${id}.log"`);
        const rows = (await response.text()).split('\n');
        expect(rows.pop()).toBe('');
        expect(rows).toHaveLength(751);
        expect(rows[0]).toBe(`[${new Date(T0 + 1).toISOString()}] WARN  [c] line 1`);
        expect(rows.at(-1)).toMatch(/ FATAL \[hook\] first ⏎ second x red$/);
      });

      test('is an error instead of a file for an unusable filter or an unknown agent', async () => {
        await send(line('x'));
        const path = `/api/v1/agents/${id}/logs/download`;
        expect((await target.get(`${path}?level=loud`)).status).toBe(400);
        expect((await target.get(`${path}?limit=5`)).status).toBe(400);
        expect((await target.get(`/api/v1/agents/nobody-here/logs/download`)).status).toBe(404);
      });
    });

    test('truncates long lines with a mark and the count of omitted characters', async () => {
      await send(line('ä'.repeat(60_000)), line('x'.repeat(64 * 1024)));
      const { lines, log } = await read();
      const [cut, whole] = texts({ lines } as LogPage);
      expect(new TextEncoder().encode(cut).byteLength).toBeLessThanOrEqual(64 * 1024);
      const [, kept = '', count = ''] = /^(ä+)… \[([\d,]+) bytes cut\]$/.exec(cut ?? '') ?? [];
      expect(kept.length * 2 + Number(count.replaceAll(',', ''))).toBe(120_000);
      expect(whole).toBe('x'.repeat(64 * 1024));
      expect(log.bytes).toBe(new TextEncoder().encode(`${cut}${whole}`).byteLength);
    });
  });
}
