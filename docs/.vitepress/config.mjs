import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../..', import.meta.url));
const repository = process.env.GITHUB_REPOSITORY;

/** GitHub serves the site of `owner/name` at `/name/`, and that of `owner/owner.github.io` at `/`. */
const [, name = ''] = repository?.split('/') ?? [];
const base = !name || name.endsWith('.github.io') ? '/' : `/${name}/`;

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
 * Returns GitHub's anchor for a heading. VitePress numbers duplicates as GitHub does.
 *
 * @param {string} heading
 */
function slugify(heading) {
  const kept = heading.toLowerCase().replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, '');
  return kept.replaceAll(' ', '-');
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
  base,
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
    anchor: { slugify },
    config(md) {
      const { link_open: before = (tokens, at, options, _env, self) => self.renderToken(tokens, at, options) } =
        md.renderer.rules;
      md.renderer.rules.link_open = (tokens, at, options, env, self) => {
        const token = tokens[at];
        const [path = '', anchor = ''] = (token?.attrGet('href') ?? '').split('#');
        const isFile = /^\.{0,2}\/?[\w.-]/.test(path) && !/^[a-z]+:/.test(path);
        const file = isFile ? normalize(join(env.relativePath ?? '', '..', path)) : '';
        if (file === 'README.md') token?.attrSet('href', `/#${anchor}`);
        else if (token && file && !file.endsWith('.md') && existsSync(join(root, file))) {
          token.attrSet('href', repository ? `https://github.com/${repository}/blob/main/${file}` : '#');
        }
        return before(tokens, at, options, env, self);
      };
    },
  },
};
