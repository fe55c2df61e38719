import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Fields, fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { onTestFinished } from 'vitest';

/** What a model is asked, as far as a script needs it. */
export interface CodexAsked {
  /** What people, and their programs, have said since the model spoke last. */
  said: string;
  /** What their programs have it know beside that, in the role of developers. */
  context: string;
  /** What its commands gave since then. */
  results: string[];
}

export interface CodexReply {
  text: string;
  /** A command that it runs. */
  run?: { cmd: string; [argument: string]: unknown };
  /** Another tool that it calls. */
  call?: { name: string; namespace: string; args: object };
}

/**
 * A scripted model on loopback for Codex: as much of OpenAI's Responses as Codex needs.
 *
 * @see POST /v1/responses, streamed
 */
export async function startCodexModel(script: (asked: CodexAsked) => CodexReply): Promise<{ url: string }> {
  let count = 0;
  const server = createServer((request, response) => {
    if (request.method !== 'POST' || !request.url?.endsWith('/responses')) return void response.writeHead(404).end();
    void bodyOf(request).then((body) => {
      count += 1;
      // Without tools it is asked for a title.
      const reply = listOf(body.tools).length === 0 ? { text: 'A title' } : script(askedIn(listOf(body.input)));
      stream(response, `r${process.pid}-${count}`, reply);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

function askedIn(input: readonly unknown[]): CodexAsked {
  const items = input.map(fieldsOf);
  const isModels = ({ role, type }: Fields) => role === 'assistant' || /_call$|^reasoning$/.test(String(type));
  const fresh = items.slice(items.findLastIndex(isModels) + 1);
  const by = (author: string) => fresh.filter(({ role }) => role === author).map(({ content }) => plain(content));
  const results = fresh.filter(({ type }) => String(type).endsWith('_output')).map(({ output }) => plain(output));
  return { said: by('user').join('\n'), context: by('developer').join('\n'), results };
}

function plain(content: unknown): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => textOf(fieldsOf(part).text) ?? '')
    .join('\n');
}

function stream(response: ServerResponse, id: string, { text, run, call: other }: CodexReply): void {
  const message = { type: 'message', id: `msg_${id}`, role: 'assistant', content: [{ type: 'output_text', text }] };
  const call = { type: 'function_call', id: `fc_${id}`, call_id: `call_${id}`, name: 'exec_command' };
  const { args, ...named } = other ?? { args: run };
  const output = [message, ...(args === undefined ? [] : [{ ...call, ...named, arguments: JSON.stringify(args) }])];
  const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const tell = (type: string, fields: object) =>
    response.write(`event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`);
  tell('response.created', { response: { id, output: [] } });
  tell('response.output_item.added', { output_index: 0, item: { ...message, content: [] } });
  for (const delta of text.split(/(?<= )/)) {
    tell('response.output_text.delta', { item_id: message.id, output_index: 0, content_index: 0, delta });
  }
  for (const [at, item] of output.entries()) tell('response.output_item.done', { output_index: at, item });
  tell('response.completed', { response: { id, output, usage } });
  response.end();
}

async function bodyOf(request: IncomingMessage): Promise<Fields> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return fieldsOf(parseJson(text));
}
