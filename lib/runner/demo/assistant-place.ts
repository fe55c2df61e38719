import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { TESTS_FILE, testsProgram } from './assistant-script';

/** Where the demo's answering agent works and lives: nothing of the user's is in it. */
export interface AssistantPlace {
  project: string;
  /** What its commands print. */
  output: string;
  home: string;
  config: string;
  temp: string;
}

type Environment = Record<string, string | undefined>;

/** What programs need to run at all. */
const KEPT = ['PATH', 'Path', 'SHELL', 'LANG', 'SystemRoot', 'SystemDrive', 'ComSpec', 'PATHEXT'];

const REST_MS = 1_200;

export function makePlace(dataDir: string, speed: number): AssistantPlace {
  const base = join(dataDir, 'demo');
  const folder = (name: string) => {
    mkdirSync(join(base, name), { recursive: true, mode: 0o700 });
    return join(base, name);
  };
  const place = {
    project: folder('project'),
    output: folder('output'),
    home: folder('home'),
    config: folder('config'),
    temp: folder('tmp'),
  };
  writeFileSync(join(place.project, TESTS_FILE), testsProgram(REST_MS / speed));
  return place;
}

/** What it and its commands are given: neither keys nor proxies, settings or accounts of whoever started the demo. */
export function environmentOf(env: Environment, place: AssistantPlace, modelUrl: string | undefined): Environment {
  const { home, config, temp } = place;
  const kept = Object.fromEntries(KEPT.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
  const path = env.PATH ?? env.Path ?? '';
  return {
    ...kept,
    // The node that runs us, should it not be found by name.
    PATH: [path, dirname(process.execPath)].filter(Boolean).join(delimiter),
    HOME: home,
    USERPROFILE: home,
    CLAUDE_CONFIG_DIR: config,
    TMPDIR: temp,
    TEMP: temp,
    TERM: 'dumb',
    ...(modelUrl === undefined
      ? {}
      : { ANTHROPIC_BASE_URL: modelUrl, ANTHROPIC_API_KEY: 'sk-ant-no-key-scripted-model' }),
    // It looks for instructions in every folder above the project, and one of those may be the user's home; and it reads
    // the files that a message names with an @.
    CLAUDE_CODE_DISABLE_CLAUDE_MDS: '1',
    CLAUDE_CODE_DISABLE_FILE_MENTIONS: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    DISABLE_TELEMETRY: '1',
    DISABLE_AUTOUPDATER: '1',
    DISABLE_ERROR_REPORTING: '1',
  };
}
