import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { type Fields, fieldsOf, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { onTestFinished } from 'vitest';

/**
 * A scripted model on loopback. Supports Anthropic Messages, OpenAI chat completions and Responses, and Gemini's
 * generateContent.
 */
export interface ModelContext {
  /** User text since the model's last output. */
  said: string;
  /** Tool results since the model's last output. */
  results: string[];
}

export interface ModelStep {
  text?: string;
  call?: { name: string; args: object };
  /** Milliseconds between words. */
  paceMs?: number;
  /** The request fails with this message. */
  error?: string;
}

interface Api {
  matches(path: string): boolean;
  read(body: Fields): ModelContext & { hasTools: boolean };
  frames(step: ModelStep & { id: string }): unknown[];
  frame(value: unknown): string;
  end: string;
}

export async function startAcpModel(script: (context: ModelContext) => ModelStep): Promise<string> {
  let calls = 0;
  const tag = Math.random().toString(16).slice(2, 8);
  const server = createServer((request, response) => void answer(request, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  async function answer(request: IncomingMessage, response: ServerResponse) {
    const path = (request.url ?? '').split('?')[0] ?? '';
    let text = '';
    for await (const chunk of request) text += chunk;
    const api = APIS.find(({ matches }) => matches(path));
    const json = (status: number, value: object) =>
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
    if (api === undefined) return json(/count_?tokens$/i.test(path) ? 200 : 404, { input_tokens: 1, totalTokens: 1 });
    const context = api.read(fieldsOf(parseJson(text)));
    const step = context.hasTools ? script(context) : { text: 'A title' };
    if (step.error !== undefined) {
      return json(400, { type: 'error', error: { code: 400, type: 'invalid_request_error', message: step.error } });
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const value of api.frames({ ...step, id: `${tag}_${++calls}` })) {
      if (response.destroyed) return;
      response.write(api.frame(value));
      if (step.paceMs !== undefined) await pause(step.paceMs);
    }
    return response.end(api.end);
  }
}

const words = (text = '') => text.match(/\S+\s*/g) ?? [];
const texts = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : listOf(content)
        .map((part) => String(fieldsOf(part).text ?? ''))
        .join('\n');
const since = (messages: unknown, role: string) => {
  const all = listOf(messages).map(fieldsOf);
  return all.slice(all.findLastIndex((message) => message.role === role) + 1);
};

const anthropic: Api = {
  matches: (path) => path.endsWith('/messages'),
  read({ messages, tools }) {
    const parts = since(messages, 'assistant')
      .filter(({ role }) => role === 'user')
      .flatMap(({ content }) => (typeof content === 'string' ? [{ type: 'text', text: content }] : listOf(content)))
      .map(fieldsOf);
    return {
      said: parts.map(({ text }) => text ?? '').join('\n'),
      results: parts.filter(({ type }) => type === 'tool_result').map(({ content }) => texts(content)),
      hasTools: listOf(tools).length > 0,
    };
  },
  frames({ id, text, call }) {
    const blocks = [
      ...(text === undefined
        ? []
        : [
            {
              start: { type: 'text', text: '' },
              deltas: words(text).map((one) => ({ type: 'text_delta', text: one })),
            },
          ]),
      ...(call === undefined
        ? []
        : [
            {
              start: { type: 'tool_use', id: `toolu_${id}`, name: call.name, input: {} },
              deltas: [{ type: 'input_json_delta', partial_json: JSON.stringify(call.args) }],
            },
          ]),
    ];
    const message = {
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      model: 'scripted',
      content: [],
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    return [
      { type: 'message_start', message },
      ...blocks.flatMap(({ start, deltas }, index) => [
        { type: 'content_block_start', index, content_block: start },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]),
      {
        type: 'message_delta',
        delta: { stop_reason: call === undefined ? 'end_turn' : 'tool_use' },
        usage: { output_tokens: 1 },
      },
      { type: 'message_stop' },
    ];
  },
  frame: (value) => `event: ${fieldsOf(value).type}\ndata: ${JSON.stringify(value)}\n\n`,
  end: '',
};

const chat: Api = {
  matches: (path) => path.endsWith('/chat/completions'),
  read({ messages, tools }) {
    const fresh = since(messages, 'assistant');
    return {
      said: fresh
        .filter(({ role }) => role === 'user')
        .map(({ content }) => texts(content))
        .join('\n'),
      results: fresh.filter(({ role }) => role === 'tool').map(({ content }) => texts(content)),
      hasTools: listOf(tools).length > 0,
    };
  },
  frames({ id, text, call }) {
    const chunk = (delta: object, finish_reason: string | null = null) => ({
      ...{ id: `chatcmpl_${id}`, object: 'chat.completion.chunk', created: 0, model: 'scripted' },
      choices: [{ index: 0, delta, finish_reason }],
    });
    const made = call && {
      index: 0,
      id: `call_${id}`,
      type: 'function',
      function: { name: call.name, arguments: JSON.stringify(call.args) },
    };
    return [
      chunk({ role: 'assistant', content: '' }),
      ...words(text).map((content) => chunk({ content })),
      ...(made === undefined ? [] : [chunk({ tool_calls: [made] })]),
      chunk({}, made === undefined ? 'stop' : 'tool_calls'),
    ];
  },
  frame: (value) => `data: ${JSON.stringify(value)}\n\n`,
  end: 'data: [DONE]\n\n',
};

const gemini: Api = {
  matches: (path) => /:(streamG|g)enerateContent$/.test(path),
  read({ contents, tools }) {
    const parts = since(contents, 'model')
      .flatMap((content) => listOf(content.parts))
      .map(fieldsOf);
    return {
      said: parts.map(({ text }) => text ?? '').join('\n'),
      results: parts.flatMap(({ functionResponse }) =>
        functionResponse === undefined ? [] : [JSON.stringify(fieldsOf(functionResponse).response)],
      ),
      hasTools: listOf(tools).length > 0,
    };
  },
  frames({ id, text, call }) {
    const chunk = (parts: object[], finishReason?: string) => ({
      responseId: id,
      candidates: [{ index: 0, content: { role: 'model', parts }, ...(finishReason ? { finishReason } : {}) }],
      usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    });
    const last = call === undefined ? { text: '' } : { functionCall: { id: `call_${id}`, ...call } };
    return [...words(text).map((one) => chunk([{ text: one }])), chunk([last], 'STOP')];
  },
  frame: (value) => `data: ${JSON.stringify(value)}\r\n\r\n`,
  end: '',
};

const responses: Api = {
  matches: (path) => path.endsWith('/responses'),
  read({ input, tools }) {
    const items = listOf(input).map(fieldsOf);
    const isModels = ({ role, type }: Fields) => role === 'assistant' || /_call$|^reasoning$/.test(String(type));
    const fresh = items.slice(items.findLastIndex(isModels) + 1);
    return {
      said: fresh
        .filter(({ role }) => role === 'user')
        .map(({ content }) => texts(content))
        .join('\n'),
      results: fresh.filter(({ type }) => String(type).endsWith('_output')).map(({ output }) => texts(output)),
      hasTools: listOf(tools).length > 0,
    };
  },
  frames({ id, text = '', call }) {
    const content = [{ type: 'output_text', text }];
    const message = { type: 'message', id: `msg_${id}`, role: 'assistant', content };
    const made = call && {
      ...{ type: 'function_call', id: `fc_${id}`, call_id: `call_${id}` },
      ...{ name: call.name, arguments: JSON.stringify(call.args) },
    };
    const output = made === undefined ? [message] : [message, made];
    const usage = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };
    return [
      { type: 'response.created', response: { id, output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: { ...message, content: [] } },
      ...words(text).map((delta) => ({
        ...{ type: 'response.output_text.delta', item_id: message.id, output_index: 0, content_index: 0, delta },
      })),
      ...output.map((item, output_index) => ({ type: 'response.output_item.done', output_index, item })),
      { type: 'response.completed', response: { id, output, usage } },
    ];
  },
  frame: (value) => `event: ${fieldsOf(value).type}\ndata: ${JSON.stringify(value)}\n\n`,
  end: '',
};

const APIS = [anthropic, chat, gemini, responses];

/** The parts of a model request that scripts use. */
export interface CodexInput {
  /** User text since the model's last output. */
  said: string;
  /** Developer-role text. */
  context: string;
  /** Command results since the model's last output. */
  results: string[];
}

export interface CodexReply {
  text: string;
  /** A command to run. */
  run?: { cmd: string; [argument: string]: unknown };
  /** Another tool to call. */
  call?: { name: string; namespace: string; args: object };
}

/**
 * A scripted model on loopback for Codex: the subset of OpenAI's Responses API that Codex uses.
 *
 * @see POST /v1/responses, streamed
 */
export async function startCodexModel(script: (asked: CodexInput) => CodexReply): Promise<{ url: string }> {
  let count = 0;
  const server = createServer((request, response) => {
    if (request.method !== 'POST' || !request.url?.endsWith('/responses')) return void response.writeHead(404).end();
    void bodyOf(request).then((body) => {
      count += 1;
      // A request without tools asks for a title.
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

function askedIn(input: readonly unknown[]): CodexInput {
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
  for (const [index, item] of output.entries()) tell('response.output_item.done', { output_index: index, item });
  tell('response.completed', { response: { id, output, usage } });
  response.end();
}

async function bodyOf(request: IncomingMessage): Promise<Fields> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return fieldsOf(parseJson(text));
}
