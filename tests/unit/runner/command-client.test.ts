import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { CommandClient } from '@interlude/runner/host/command-client';
import { SeenCommands } from '@interlude/runner/host/seen-commands';
import { Outbox } from '@interlude/runner/outbox/outbox';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { tempDir } from '../../support/temp-dir';

/** A server that streams the test's commands and accepts acknowledgements. */
let server: Server;
let url: string;
let stream: ServerResponse | null;
let acks: string[];
let outbox: Outbox;

beforeEach(async () => {
  acks = [];
  stream = null;
  server = createServer((request, response) => {
    if (request.url?.includes('/ack')) {
      acks.push(request.url.split('/').at(-2) ?? '');
      response.setHeader('content-type', 'application/json').end('{}');
      return;
    }
    response.setHeader('content-type', 'text/event-stream');
    response.write('event: hello\ndata: {"resume":"ok","position":"0"}\n\n');
    stream = response;
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  outbox = await Outbox.open(join(await tempDir(), 'outbox.db'), { agentId: 'a1', endpoint, sendAtOpen: false });
});
afterEach(async () => {
  await outbox.stop();
  server.closeAllConnections();
  server.close();
});

const endpoint = async () => ({ url, token: undefined });

/** A runner, and the commands it has executed. */
async function runner(seen: SeenCommands) {
  const [acted, errors]: string[][] = [[], []];
  const client = new CommandClient({
    ...{ endpoint, agentId: 'a1', runnerId: 'r1', startedAt: 1, seen },
    act: async ({ id }) => {
      acted?.push(id);
      return { state: 'done' };
    },
    onFenced: () => {},
    onError: (message) => errors?.push(message),
  });
  client.start();
  onTestFinished(() => client.stop());
  await expect.poll(() => stream).not.toBeNull();
  return { acted, errors };
}

function send(id: string, position: number): void {
  const command = { id, type: 'interrupt', sessionId: 's1', createdAt: 1, expiresAt: 2, body: { turnId: 't1' } };
  stream?.write(`id: ${position}\nevent: command\ndata: ${JSON.stringify(command)}\n\n`);
}

test('acknowledges a repeated command without executing it again', async () => {
  const { acted } = await runner(await SeenCommands.load(outbox, Date.now()));
  send('c1', 1);
  await expect.poll(() => acks).toEqual(['c1']);
  send('c1', 2);
  await expect.poll(() => acks).toEqual(['c1', 'c1']);
  send('c2', 3);
  await expect.poll(() => acks).toEqual(['c1', 'c1', 'c2']);
  expect(acted).toEqual(['c1', 'c2']);
});

test("does not execute a command that it can't store", async () => {
  const seen = await SeenCommands.load(outbox, Date.now());
  const { acted, errors } = await runner(seen);
  await outbox.stop();
  send('c1', 1);
  await expect.poll(() => errors).toHaveLength(1);
  expect([acted, acks]).toEqual([[], []]);
});
