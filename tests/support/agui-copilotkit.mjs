/**
 * A real AG-UI server in its own process: CopilotKit's BuiltInAgent and runtime with a scripted model. The argument is
 * a folder whose node_modules contains @copilotkit/runtime. Prints the URL that accepts runs. Exits when stdin closes.
 */
import { createServer } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

process.env.COPILOTKIT_TELEMETRY_DISABLED = 'true';
const folder = join(process.argv[2] ?? '', 'node_modules');
const load = (/** @type {string} */ path) => import(pathToFileURL(join(folder, path)).href);

const model = await listen((request, response) => void complete(request, response));
const [{ BuiltInAgent, CopilotRuntime, defineTool }, { createCopilotNodeListener }, { createOpenAI }, z] =
  await Promise.all([
    load('@copilotkit/runtime/dist/v2/index.mjs'),
    load('@copilotkit/runtime/dist/v2/node.mjs'),
    load('@ai-sdk/openai/dist/index.mjs'),
    load('zod/index.js'),
  ]);

const tools = [
  defineTool({
    name: 'list_files',
    description: 'Lists the files of a folder',
    parameters: z.object({ path: z.string() }),
    execute: async (/** @type {{ path: string }} */ { path }) => [`${path}/a.txt`, `${path}/b.txt`],
  }),
  defineTool({
    name: 'deploy',
    description: 'Deploys',
    parameters: z.object({ to: z.string() }),
    interrupt: true,
    interruptMessage: 'Deploy it?',
  }),
];
const provider = createOpenAI({ baseURL: `${model}/v1`, apiKey: 'none' });
const agent = new BuiltInAgent({ model: provider.chat('scripted'), maxSteps: 5, maxRetries: 0, tools });
const runtime = new CopilotRuntime({ agents: { default: agent } });
const url = await listen(createCopilotNodeListener({ runtime, basePath: '/api' }));
process.stdout.write(`${url}/api/agent/default/run\n`);
process.stdin.resume().once('end', () => process.exit(0));

/** @param {import('node:http').RequestListener} handle */
async function listen(handle) {
  const server = createServer(handle);
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(null)));
  const address = server.address();
  return `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
}

/**
 * Chat completions, scripted by the last message.
 *
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
async function complete(request, response) {
  /** @type {{ messages: { role: string, content?: string | { text?: string }[] }[] }} */
  const { messages } = JSON.parse(await text(request));
  const last = messages.at(-1);
  const said = textOf(last?.content);
  if (last?.role === 'user' && /FAIL/.test(said)) {
    response.writeHead(400, { 'content-type': 'application/json' });
    response.end('{"error":{"message":"the model refuses","type":"invalid_request_error"}}');
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (/** @type {object} */ delta, /** @type {string | null} */ finish_reason = null) => {
    const choices = [{ index: 0, delta, finish_reason }];
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'scripted', choices };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  const words = (/** @type {string} */ sentence) => {
    for (const word of sentence.split(/(?<= )/)) send({ role: 'assistant', content: word });
  };
  const call = (/** @type {string} */ name, /** @type {object} */ args) => {
    const made = { name, arguments: JSON.stringify(args) };
    send({ tool_calls: [{ index: 0, id: `call_${messages.length}`, type: 'function', function: made }] });
    send({}, 'tool_calls');
  };
  if (last?.role === 'tool') words(`The tool said ${said}.`);
  else if (/LIST/.test(said)) {
    words('I look.');
    call('list_files', { path: '/src' });
  } else if (/DEPLOY/.test(said)) call('deploy', { to: 'production' });
  else if (/LONG/.test(said)) {
    const goesOn = setInterval(() => send({ role: 'assistant', content: 'and on ' }), 20);
    response.once('close', () => clearInterval(goesOn));
    return;
  } else {
    const asked = messages.filter(({ role }) => role === 'user').map(({ content }) => textOf(content));
    words(`You said: ${asked.join(', ')}.`);
  }
  send({}, 'stop');
  response.end('data: [DONE]\n\n');
}

/** @param {string | { text?: string }[] | undefined} content */
function textOf(content = '') {
  return typeof content === 'string' ? content : content.map((part) => part.text ?? '').join('');
}
