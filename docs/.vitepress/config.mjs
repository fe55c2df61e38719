import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const repository = process.env.GITHUB_REPOSITORY;

/** A copy of every page, below this folder because Vite looks for Vue above the pages. */
const PAGES = fileURLToPath(new URL('pages', import.meta.url));
rmSync(PAGES, { recursive: true, force: true });
const files = execFileSync('git', ['ls-files', '-z', '--', '*.md', 'public/readme', ':!tests', ':!.github'], {
  cwd: root,
});
for (const file of files.toString().split('\0').filter(Boolean)) cpSync(join(root, file), join(PAGES, file));

const guides = {
  Run: ['self-host', 'vercel', 'sub-path', 'settings', 'database', 'operating', 'performance'],
  Share: ['sign-in', 'embedding', 'redaction', 'security'],
  Connect: ['kinds/README', 'runners', 'api', 'agui', 'conformance', '../lib/protocol/PROTOCOL'],
  Change: ['architecture', '../CONTRIBUTING', 'testing', 'decisions/README', '../CHANGELOG'],
};
const TITLES = {
  'self-host': 'Your own machines',
  vercel: 'Vercel and Turso',
  'sub-path': 'Below a path',
  operating: 'Operate',
  'sign-in': 'Sign-in',
  'kinds/README': 'Kinds of agents',
  api: 'HTTP API',
  testing: 'Tests',
  agui: 'AG-UI clients',
  '../lib/protocol/PROTOCOL': 'Protocol',
  'decisions/README': 'Decisions',
};

/** @param {string} page below docs/ */
function item(page) {
  const name = page.replace(/^.*\//, '');
  const text = TITLES[page] ?? name.charAt(0).toUpperCase() + name.slice(1).toLowerCase();
  return { text, link: normalize(join('/docs', page)) };
}

/**
 * The pages keep their paths in the repository, so that links between them work there, too. Links to other files of the
 * repository lead to its source.
 *
 * @type {import('vitepress').UserConfig}
 */
export default {
  title: 'Interlude',
  description: 'The live dashboard for coding agents that keep working after their turn has ended.',
  lang: 'en',
  srcDir: PAGES,
  rewrites: { 'README.md': 'index.md' },
  cleanUrls: true,
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    sidebar: Object.entries(guides).map(([text, pages]) => ({ text, items: pages.map(item) })),
  },
  // Pages write <placeholders> as they are.
  markdown: {
    html: false,
    config(md) {
      const { link_open: before = (tokens, at, options, _env, self) => self.renderToken(tokens, at, options) } =
        md.renderer.rules;
      md.renderer.rules.link_open = (tokens, at, options, env, self) => {
        const token = tokens[at];
        const [path = ''] = (token?.attrGet('href') ?? '').split('#');
        const isSource = /^\.{0,2}\/?[\w.-]/.test(path) && !/^[a-z]+:|\.md$/.test(path);
        const file = isSource ? normalize(join(env.relativePath ?? '', '..', path)) : '';
        if (token && file && existsSync(join(root, file))) {
          token.attrSet('href', repository ? `https://github.com/${repository}/blob/main/${file}` : '#');
        }
        return before(tokens, at, options, env, self);
      };
    },
  },
};
