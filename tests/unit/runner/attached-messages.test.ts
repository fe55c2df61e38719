import { rm, writeFile } from 'node:fs/promises';
import { pathToFileURL } from 'node:url';
import { fieldsOf, listOf } from '@interlude/protocol/fields';
import type { AttachmentFile } from '@interlude/runner/host/attachment-store';
import { type InFlightMessage, InFlightMessages } from '@interlude/runner/host/message-delivery';
import type { CommandOf } from '@interlude/runner/host/source';
import { AcpSource } from '@interlude/runner/sources/acp/acp-source';
import { isReplayed, ReplayRecorder } from '@interlude/runner/sources/acp/prompts';
import type { ClaudeSdk, UserMessage } from '@interlude/runner/sources/claude/claude-sdk';
import { ClaudeSource } from '@interlude/runner/sources/claude/claude-source';
import { connectSocket } from '@interlude/runner/sources/codex/app-server';
import { CodexSource } from '@interlude/runner/sources/codex/codex-source';
import { OpencodeSource } from '@interlude/runner/sources/opencode/opencode-source';
import { describe, expect, onTestFinished, test } from 'vitest';
import { startAgentApiSource as attachedTerminal } from '@/tests/support/agentapi-server';
import { MemorySourceContext } from '@/tests/support/source-contract';
import { ScriptedAcpAgent, SESSION } from '../../support/acp-agent';
import { AgentApiEmulator } from '../../support/agentapi-server';
import { attachedFile, bytesOf, hashOf, PNG } from '../../support/attachments';
import { CodexAppServer } from '../../support/codex-app-server';
import { FakeOpencodeServer } from '../../support/opencode-server';
import { tempDir } from '../../support/temp-dir';

/** Attachments of a message, as each kind of agent receives them. */

const settled = (look: () => unknown) => expect.poll(look, { interval: 5 });
const delivered = { state: 'delivered' };
/** The same address in a form that doesn’t look local. */
const asElsewhere = (url: string) => url.replace('127.0.0.1', '[::ffff:127.0.0.1]');

const message = (sessionId = 's', messageId = 'm1', text = 'Look at these'): CommandOf<'message'> => ({
  ...{ id: messageId, type: 'message', sessionId, createdAt: 1, expiresAt: 2 },
  body: { messageId, text, from: { kind: 'person', id: 'operator' } },
});

async function carriedFiles() {
  const folder = await tempDir();
  return {
    image: await attachedFile(folder, 'shot.png', 'image/png', PNG),
    pdf: await attachedFile(folder, 'paper.pdf', 'application/pdf', bytesOf('%PDF-1.7')),
    notes: await attachedFile(folder, 'notes.md', 'text/markdown', bytesOf('# Notes')),
    log: await attachedFile(folder, 'build.log', 'text/plain', new Uint8Array(100_000).fill(65)),
  };
}
const lineOf = ({ name, mediaType, bytes, path }: AttachmentFile) =>
  `- ${JSON.stringify(name)} (${mediaType}, ${bytes} bytes): ${path}`;
type FilesHere = NonNullable<MemorySourceContext['filesHere']>;
const lostLines = (file: AttachmentFile) =>
  `Attached to this message, but lost before delivery:\n${lineOf(file).replace(`: ${file.path}`, '')}`;
const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64');

describe('Claude Code', () => {
  function agent(given: { inHand?: InFlightMessage[]; filesHere?: FilesHere } = {}) {
    const heard: UserMessage[] = [];
    const sdk: ClaudeSdk = {
      query({ prompt }) {
        void (async () => {
          for await (const one of prompt) heard.push(one);
        })();
        let close = () => {};
        const over = new Promise<void>((resolve) => {
          close = resolve;
        });
        return {
          async *[Symbol.asyncIterator]() {
            yield* [] as object[];
            await over;
          },
          interrupt: async () => undefined,
          stopTask: async () => {},
          close: () => close(),
        };
      },
    };
    const around = new MemorySourceContext();
    around.filesHere = given.filesHere ?? null;
    const source = new ClaudeSource({
      ...{ sdk, context: around, env: { HOME: '/nowhere' }, answerWithinMs: 60_000 },
      memory: { sessionId: 's', conversationId: 'c', cwd: '/', pid: null, running: given.inHand !== undefined },
      inFlight: given.inHand ?? [],
    });
    onTestFinished(() => source.close(0, 'the test is over'));
    return { source, heard, around };
  }

  test('gets images, PDFs and short texts inline, and long texts by path', async () => {
    const { image, pdf, notes, log } = await carriedFiles();
    const { source, heard } = agent();
    await source.start();
    expect(source.sessions[0]?.attachments).toEqual(['image', 'file']);
    expect(await source.deliver(message(), false, [image, log, pdf, notes])).toEqual(delivered);
    await settled(() => heard).toHaveLength(1);
    expect(heard[0]?.uuid).toBe('m1');
    expect(heard[0]?.message.content).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64(PNG) } },
      {
        type: 'document',
        title: 'paper.pdf',
        source: { type: 'base64', media_type: 'application/pdf', data: base64(bytesOf('%PDF-1.7')) },
      },
      { type: 'document', title: 'notes.md', source: { type: 'text', media_type: 'text/plain', data: '# Notes' } },
      { type: 'text', text: `Look at these\n\nAttached to this message:\n${lineOf(log)}` },
    ]);
  });

  test('gets them again after a kill, without missing files', async () => {
    const { image, notes } = await carriedFiles();
    await rm(notes.path);
    const { source, heard } = agent({ inHand: [{ messageId: 'm1', text: 'Look', files: [image, notes] }] });
    await source.start();
    expect(await source.deliver(message(), true, [image, notes])).toEqual(delivered);
    await settled(() => heard).toHaveLength(1);
    expect(heard[0]?.message.content.map(({ type }) => type)).toEqual(['image', 'text']);
    expect(heard[0]?.message.content[1]).toEqual({ type: 'text', text: `Look\n\n${lostLines(notes)}` });
  });

  test('gets files of a killed process from their new place, with the right bytes only', async () => {
    const { image, pdf } = await carriedFiles();
    const moved = [image, pdf].map((file) => ({ ...file, path: `/another/folder/${file.name}` }));
    await writeFile(pdf.path, 'damaged');
    const filesHere = () => [image, pdf];
    const { source, heard } = agent({ inHand: [{ messageId: 'm1', text: 'Look', files: moved }], filesHere });
    await source.start();
    await settled(() => heard).toHaveLength(1);
    expect(heard[0]?.message.content).toEqual([
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64(PNG) } },
      { type: 'text', text: `Look\n\n${lostLines(pdf)}` },
    ]);
  });

  test('gets messages in order, whatever the first one carries', async () => {
    const { image, pdf } = await carriedFiles();
    const { source, heard } = agent();
    await source.start();
    void source.deliver(message('s', 'm1'), false, [image, pdf, image, pdf]);
    source.deliver(message('s', 'm2'), false).catch(() => 'it waits for the word that the first one has arrived');
    await settled(() => heard.map(({ uuid }) => uuid)).toEqual(['m1']);
  });
});

describe('an ACP agent', () => {
  async function live(promptCapabilities: object | undefined, past?: object[], around = new MemorySourceContext()) {
    const agent = await ScriptedAcpAgent.open({ capabilities: { promptCapabilities }, ...(past ? { past } : {}) });
    const nativeId = around.stored.size === 0 ? null : SESSION;
    const source = new AcpSource({
      ...{ context: around, command: agent.command, env: { PATH: process.env.PATH }, answerWithinMs: 60_000 },
      memory: { sessionId: 's', nativeId, cwd: process.cwd(), pid: null, running: false, note: null },
      inFlight: await InFlightMessages.restore(around, 's'),
    });
    await source.start();
    onTestFinished(() => source.close(0, 'the test is over'));
    const prompts = () => agent.of('session/prompt').map(({ params }) => fieldsOf(params).prompt);
    return { agent, source, prompts };
  }

  const linkTo = ({ path, name, mediaType, bytes }: AttachmentFile) => {
    const uri = pathToFileURL(path).href;
    return { type: 'resource_link', uri, name, mimeType: mediaType, size: bytes };
  };

  test('gets supported content inline and links to the rest', async () => {
    const { image, pdf, notes, log } = await carriedFiles();
    const { source, prompts } = await live({ image: true, embeddedContext: true });
    expect(await source.deliver(message(), false, [image, pdf, notes, log])).toEqual(delivered);
    await settled(prompts).toHaveLength(1);
    expect(source.sessions[0]?.attachments).toEqual(['image', 'file']);
    const uri = pathToFileURL(notes.path).href;
    expect(prompts()[0]).toEqual([
      { type: 'text', text: 'Look at these' },
      { type: 'image', mimeType: 'image/png', data: base64(PNG) },
      linkTo(pdf),
      { type: 'resource', resource: { uri, mimeType: 'text/markdown', text: '# Notes' } },
      linkTo(log),
    ]);
  });

  test('gets links if it supports text only', async () => {
    const { image, notes } = await carriedFiles();
    const { source, prompts } = await live(undefined);
    await source.deliver(message(), false, [image, notes]);
    await settled(prompts).toHaveLength(1);
    expect(source.sessions[0]?.attachments).toEqual(['file']);
    expect(prompts()[0]).toEqual([{ type: 'text', text: 'Look at these' }, linkTo(image), linkTo(notes)]);
  });

  const replayOf = (past: object[][]) =>
    past.flatMap((blocks) => [
      ...blocks.map((content) => ({ sessionUpdate: 'user_message_chunk', content })),
      { sessionUpdate: 'agent_message_chunk', content: text('I see.') },
    ]);

  /** Restarts a runner that was killed with an undelivered message. @returns the next prompts */
  async function afterKill(past: object[][], message: InFlightMessage): Promise<unknown[]> {
    const around = new MemorySourceContext();
    around.stored.set('in-hand:s', JSON.stringify([message]));
    const { source, prompts } = await live({ image: true, embeddedContext: true }, replayOf(past), around);
    void source.deliver(messageOf('last', 'And now?'), false);
    await settled(prompts).not.toEqual([]);
    return prompts().flatMap((blocks) => [blocks]);
  }
  const text = (said: string) => ({ type: 'text', text: said });
  const picture = (bytes: Uint8Array) => ({ type: 'image', mimeType: 'image/png', data: base64(bytes) });
  const messageOf = (id: string, words: string) => message('s', id, words);
  const isGivenAgain = (past: object[][], inHand: InFlightMessage) => {
    const agents = new ReplayRecorder();
    agents.record({ dir: 'out', msg: { method: 'session/load', params: { sessionId: SESSION } } });
    for (const update of replayOf(past)) {
      agents.record({ dir: 'in', msg: { method: 'session/update', params: { sessionId: SESSION, update } } });
    }
    return !agents.finish().some((one) => isReplayed(inHand, one));
  };
  const another = Uint8Array.from(PNG, (byte, index) => (index === PNG.length - 1 ? byte ^ 1 : byte));

  test('gets an image without text despite a similar one in its history', async () => {
    const { image } = await carriedFiles();
    const inHand = { messageId: 'm2', text: 'shot.png', files: [image] };
    const [prompt] = await afterKill([[text('shot.png'), picture(another)]], inHand);
    expect(prompt).toEqual([text(`shot.png (${hashOf(bytesOf('m2')).slice(0, 8)})`), picture(PNG)]);
    expect(isGivenAgain([[text('shot.png'), picture(PNG)]], inHand)).toBe(true);
    expect(isGivenAgain([listOf(prompt) as object[]], inHand)).toBe(false);
  });

  test('gets a message despite a similar one in its history', async () => {
    const { image } = await carriedFiles();
    const inHand = { messageId: 'm2', text: 'Look', files: [image] };
    expect(isGivenAgain([[text('Look at the logs')]], inHand)).toBe(true);
    expect(isGivenAgain([[text('Look at the logs'), picture(PNG)]], inHand)).toBe(true);
    expect(isGivenAgain([[text('Look')]], inHand)).toBe(true);
    expect(isGivenAgain([[text('Look'), picture(another)]], inHand)).toBe(true);
    expect(isGivenAgain([[text('Look'), picture(PNG), picture(another)]], inHand)).toBe(true);
    expect(isGivenAgain([[text('Look'), picture(PNG)]], inHand)).toBe(false);
  });

  test('does not get files again that its history has', async () => {
    const { image, notes } = await carriedFiles();
    const inHand = { messageId: 'm2', text: 'Look', files: [image, notes] };
    const link = (hash: string) => text(`[@${hash}.md](file:///data/attachments/${hash}.md)`);
    const resource = { uri: `file:///data/${notes.hash}.md`, mimeType: 'text/markdown', text: '# Notes' };
    for (const shown of [link(notes.hash), { type: 'resource', resource }, text('# Notes')]) {
      expect(isGivenAgain([[text('Look'), picture(PNG), shown]], inHand)).toBe(false);
    }
    const context = text(`\n<context ref="${resource.uri}">\n# Notes\n</context>`);
    expect(isGivenAgain([[text('Look'), picture(PNG), link(notes.hash), context]], inHand)).toBe(false);
    for (const shown of [link(image.hash), text('# Notes, and more')]) {
      expect(isGivenAgain([[text('Look'), picture(PNG), shown]], inHand)).toBe(true);
    }
  });

  test('gets a note about files lost before delivery', async () => {
    const { image, notes } = await carriedFiles();
    await rm(notes.path);
    const [prompt] = await afterKill([], { messageId: 'm1', text: 'Look', files: [image, notes] });
    expect(prompt).toEqual([text('Look'), picture(PNG), text(lostLines(notes))]);
  });

  test('does not get a message again that its history has', async () => {
    const { image } = await carriedFiles();
    const said = { type: 'text', text: 'Look at these' };
    const past = [
      { sessionUpdate: 'user_message_chunk', content: said },
      { sessionUpdate: 'user_message_chunk', content: { type: 'image', mimeType: 'image/png', data: base64(PNG) } },
    ];
    const { agent, source, prompts } = await live({ image: true }, past);
    await source.deliver(message(), false, [image]);
    await agent.prompted(1);
    process.kill(source.sessions[0]?.process?.pid ?? 0, 'SIGKILL');
    await settled(() => agent.of('session/load')).toHaveLength(1);
    await settled(() => source.sessions[0]?.pendingMessages).toBe(0);
    await source.deliver(message('s', 'm2', 'And now?'), false);
    await settled(prompts).toHaveLength(2);
    expect(fieldsOf(agent.of('session/load')[0]?.params).sessionId).toBe(SESSION);
    expect(prompts()[1]).toEqual([{ type: 'text', text: 'And now?' }]);
  });
});

describe('Codex', () => {
  test('gets images as local files and others by path, once across a kill', async () => {
    const { image, notes } = await carriedFiles();
    const server = new CodexAppServer();
    const { path } = await server.listen();
    const thread = server.newThread();
    const connect = async (around: MemorySourceContext) => {
      const source = new CodexSource({ own: null, context: around, open: (listener) => connectSocket(path, listener) });
      onTestFinished(() => source.close(0, 'the test is over'));
      await source.start();
      await settled(() => source.sessions.length).toBe(1);
      return source;
    };
    const around = new MemorySourceContext();
    const source = await connect(around);
    expect(source.sessions[0]?.attachments).toEqual(['image', 'file']);
    expect(await source.deliver(message(thread.id), false, [image, notes])).toEqual(delivered);
    around.deafen();
    const next = await connect(new MemorySourceContext(undefined, around));
    expect(await next.deliver(message(thread.id), true, [image, notes])).toEqual(delivered);
    const inputs = server.requests.filter(({ method }) => method === 'turn/start').map(({ params }) => params);
    expect(inputs.map((params) => fieldsOf(params).input)).toEqual([
      [
        {
          type: 'text',
          text: `Look at these\n\nAttached to this message:\n${lineOf(notes)}`,
          text_elements: [],
        },
        { type: 'localImage', path: image.path },
      ],
    ]);
  });

  test('gets a note about an image missing on disk', async () => {
    const { image } = await carriedFiles();
    await rm(image.path);
    const server = new CodexAppServer();
    const { path } = await server.listen();
    const thread = server.newThread();
    const around = new MemorySourceContext();
    const source = new CodexSource({ own: null, context: around, open: (listener) => connectSocket(path, listener) });
    onTestFinished(() => source.close(0, 'the test is over'));
    await source.start();
    await settled(() => source.sessions.length).toBe(1);
    expect(await source.deliver(message(thread.id), false, [image])).toEqual(delivered);
    const [turn] = server.requests.filter(({ method }) => method === 'turn/start');
    expect(fieldsOf(turn?.params).input).toEqual([
      { type: 'text', text: `Look at these\n\n${lostLines(image)}`, text_elements: [] },
    ]);
  });
});

describe('OpenCode', () => {
  async function followed(url: (own: string) => string = (own) => own) {
    const server = new FakeOpencodeServer();
    await server.start();
    onTestFinished(() => server.kill());
    const session = server.session();
    const surroundings = new MemorySourceContext();
    const address = { url: url(server.url), user: 'opencode', password: null };
    const source = await OpencodeSource.open({
      address,
      shownUrl: server.url,
      context: surroundings,
      newRunId: () => 'r',
    });
    onTestFinished(() => source.close());
    await source.start();
    await settled(() => source.sessions.length).toBe(1);
    return { server, source, session };
  }

  test('gets no local path on another machine', async () => {
    const { notes, log } = await carriedFiles();
    const { server, source, session } = await followed(asElsewhere);
    const { state, reason } = await source.deliver(message(session), false, [notes, log]);
    expect([state, reason]).toEqual(['failed', expect.stringContaining('("build.log"); attach a shorter part')]);
    expect(source.sessions[0]?.pendingMessages).toBe(0);
    expect(await source.deliver(message(session, 'm2'), false, [notes])).toEqual(delivered);
    expect(server.asked.filter(({ path }) => path.endsWith('/prompt_async'))).toHaveLength(1);
  });

  test('gets images and PDFs as bytes, short texts as text, and long texts by path', async () => {
    const { image, pdf, notes, log } = await carriedFiles();
    const { server, source, session } = await followed();
    expect(source.sessions[0]?.attachments).toEqual(['image', 'file']);
    expect(await source.deliver(message(session), false, [image, notes, pdf, log])).toEqual(delivered);
    const [asked] = server.asked.filter((one) => one.path === `/session/${session}/prompt_async`);
    expect(fieldsOf(asked?.body).parts).toEqual([
      {
        type: 'text',
        text: `Look at these\n\nAttached to this message:\n${lineOf(log)}`,
        metadata: { interlude: { messageId: 'm1' } },
      },
      { type: 'file', mime: 'image/png', filename: 'shot.png', url: `data:image/png;base64,${base64(PNG)}` },
      { type: 'text', text: 'The file "notes.md", attached to this message:\n\n# Notes', synthetic: true },
      {
        type: 'file',
        mime: 'application/pdf',
        filename: 'paper.pdf',
        url: `data:application/pdf;base64,${base64(bytesOf('%PDF-1.7'))}`,
      },
    ]);
  });
});

describe('AgentAPI', () => {
  async function terminal(url: (own: string) => string = (own) => own, around = new MemorySourceContext()) {
    const server = await AgentApiEmulator.start();
    server.replies('Welcome');
    return await attachedTerminal({ url: url(server.url) }, server, around);
  }

  test('gets each file uploaded and named in the message', async () => {
    const { image, notes } = await carriedFiles();
    const { server, source, turns } = await terminal();
    expect(source.sessions[0]?.attachments).toEqual(['image', 'file']);
    expect(await source.deliver(message(), false, [image, notes])).toEqual(delivered);
    const [there, others] = ['shot.png', 'notes.md'].map((name) => `/remote/${name}`);
    const said = [lineOf({ ...image, path: there ?? '' }), lineOf({ ...notes, path: others ?? '' })].join('\n');
    expect(server.typed).toEqual([`Look at these\n\nAttached to this message:\n${said}`]);
    expect(server.uploaded.get('/remote/shot.png')).toEqual(PNG);
    server.says('I see a dot.');
    await settled(() => turns().at(-1)).toMatchObject({ asked: ['m1'], said: 'I see a dot.' });
  });

  test('gets local paths if AgentAPI has no uploads', async () => {
    const { image } = await carriedFiles();
    const { server, source } = await terminal();
    server.takesFiles = false;
    expect(await source.deliver(message(), false, [image])).toEqual(delivered);
    expect(server.typed[0]).toContain(lineOf(image));
  });

  test('refuses files on another machine without uploads', async () => {
    const { image } = await carriedFiles();
    const { server, source } = await terminal(asElsewhere);
    server.takesFiles = false;
    expect(await source.deliver(message(), false, [image])).toMatchObject({
      state: 'failed',
      reason: expect.stringContaining('accepts no files; update it to 0.10'),
    });
    expect(server.typed).toEqual([]);
  });

  test('gets the files again after a kill, under their new paths', async () => {
    const { image } = await carriedFiles();
    const around = new MemorySourceContext();
    const inHand = {
      messageId: 'm1',
      text: 'Look at these\n\nAttached to this message:\n- "shot.png": /gone/shot.png',
      words: 'Look at these',
      files: [{ ...image, path: '/another/folder/shot.png' }],
    };
    around.stored.set('in-hand:s', JSON.stringify([inHand]));
    around.filesHere = () => [image];
    const { server, source, turns } = await terminal(undefined, around);
    expect(await source.deliver(message(), true, [image])).toEqual(delivered);
    const typed = `Look at these\n\nAttached to this message:\n${lineOf({ ...image, path: '/remote/shot.png' })}`;
    expect(server.typed).toEqual([typed]);
    expect(around.stored.get('in-hand:s') ?? '').not.toContain('/gone/');
    server.replies('I see a dot.');
    await settled(turns).toEqual([{ kind: 'user', asked: ['m1'], said: 'I see a dot.', end: 'success' }]);
    expect(around.stored.has('in-hand:s')).toBe(false);
  });

  test('reports a message whose files were lost with the disk', async () => {
    const { image } = await carriedFiles();
    await rm(image.path);
    const around = new MemorySourceContext();
    const inHand = { messageId: 'm1', text: 'Look', words: 'Look', files: [image] };
    around.stored.set('in-hand:s', JSON.stringify([inHand]));
    const { server } = await terminal(undefined, around);
    await settled(() => around.reported).toEqual([
      ['m1', { state: 'failed', reason: 'the file "shot.png" is missing; attach it to a new message' }],
    ]);
    expect(server.typed).toEqual([]);
  });

  test('refuses a message whose file is missing', async () => {
    const { image } = await carriedFiles();
    await rm(image.path);
    const { server, source } = await terminal();
    expect(await source.deliver(message(), false, [image])).toEqual({
      state: 'failed',
      reason: 'the file "shot.png" is missing; attach it to a new message',
    });
    expect(server.typed).toEqual([]);
  });
});
