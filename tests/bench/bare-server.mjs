import { createServer } from 'node:http';

/**
 * A bare node:http baseline with the same responses and no work: parses what is posted and forwards it to every open
 * stream, without storage or authentication. Prints its port.
 */
const readers = new Set();
let position = 0;

const server = createServer((request, response) => {
  if (request.method === 'POST') return void take(request, response);
  if (request.url?.startsWith('/api/v1/stream')) return open(response);
  answer(response, { status: 'ok' });
});
server.listen(0, '127.0.0.1', () => {
  const address = /** @type {import('node:net').AddressInfo} */ (server.address());
  process.stdout.write(`${address.port}\n`);
});
process.on('disconnect', () => process.exit());

/** @param {import('node:http').ServerResponse} response */
function open(response) {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write('event: up-to-date\ndata: {}\n\n');
  readers.add(response);
  response.once('close', () => readers.delete(response));
}

/**
 * @param {import('node:http').IncomingMessage} request
 * @param {import('node:http').ServerResponse} response
 */
async function take(request, response) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const { records } = JSON.parse(Buffer.concat(chunks).toString());
  for (const { event } of records) {
    position += 1;
    const frame = Buffer.from(`id: ${position}\nevent: session-event\ndata: ${JSON.stringify({ event })}\n\n`);
    for (const reader of readers) reader.write(frame);
  }
  answer(response, { ackedSeq: records.at(-1).seq });
}

/**
 * @param {import('node:http').ServerResponse} response
 * @param {object} body
 */
function answer(response, body) {
  const bytes = Buffer.from(JSON.stringify(body));
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': bytes.byteLength }).end(bytes);
}
