import { renderToStaticMarkup } from 'react-dom/server';
import { expect, it } from 'vitest';
import { Markdown } from '@/components/ui/markdown/markdown';

const shown = (source: string) => renderToStaticMarkup(<Markdown text={source} />);
const target = (source: string) => /⟨opens (.*?)⟩/.exec(shown(source))?.[1] ?? null;

it.each(
  [
    ['[https://github.com/login](https://evil.test/)', 'evil.test'],
    ['[github.com](https://evil.test/)', 'evil.test'],
    ['[www.github.com](https://evil.test/)', 'evil.test'],
    ['[git**hub**.com](https://evil.test/)', 'evil.test'],
    ['[github&#46;com](https://evil.test/)', 'evil.test'],
    ['[Sign in at github.com.](https://evil.test/)', 'evil.test'],
    ['[github.com:443/x?y](https://evil.test/)', 'evil.test'],
    ['[github。com](https://evil.test/)', 'evil.test'],
    ['[`github.com`](https://evil.test/)', 'evil.test'],
    ['[github.com](https://github.com.evil.test/)', 'github.com.evil.test'],
    ['[docs.github.com](https://github.com/)', 'github.com'],
    ['[127.0.0.1](https://10.0.0.1:8080/)', '10.0.0.1:8080'],
    ['[http://localhost/](https://evil.test/)', 'evil.test'],
    ['[ada@example.test](mailto:eve@evil.test)', 'eve@evil.test'],
    ['[ada@example.test](https://evil.test/)', 'evil.test'],
    ['https://github.com@evil.test/', 'evil.test'],
    ['<https://github.com:secret@evil.test/a>', 'evil.test'],
    ['[docs](https://github.com@evil.test/)', 'evil.test'],
    ['![github.com](https://evil.test/a.png)', 'evil.test'],
    ['[аррӏе.com](https://xn--80ak6aa92e.com/)', 'xn--80ak6aa92e.com'],
    ['[аррӏе.com](https://аррӏе.com/)', 'xn--80ak6aa92e.com'],
    // the path of the target
    ['[https://github.com/login](https://evil.test/https://github.com/login)', 'evil.test'],
    ['[github.com](https://evil.test/github.com)', 'evil.test'],
    ['[a/b on github.com](https://evil.test/?github.com#github.com)', 'evil.test'],
    // other characters for those of an address
    ...['github․com', 'github﹒com', 'githubꓸcom', 'github٠com', 'github·com', 'git\u00adhub.com'],
    ...[
      'https：//github．com',
      'https:⁄⁄github․com⁄login',
      'http:/github.com',
      'http:\\\\github.com',
      'h\u200bttps://intranet/a',
    ],
    ...[
      'localhost:3000',
      'localhost/login',
      '[::1]:80',
      '//github.com',
      'hxxps://login',
      'http://2130706433/',
      'ɢithub.com',
    ],
    // around it
    ...[
      '\\*github.com\\*',
      '~github.com',
      'url=github.com',
      'github.com=ok',
      'github.com+ok',
      '→github.com',
      '•github.com',
    ],
    ...[
      'go/https://github.com',
      'github.com@evil.test',
      'https://github.com@evil.test/',
      'github.com\u2026',
      '【github.com】',
    ],
    ...[
      'PayPal.com',
      'GITHUB.COM',
      'crates.io',
      'Foo on bank.co.uk',
      'docs.rs/serde',
      'www.main.py',
      'вики.рф',
      'x'.repeat(2_001),
    ],
    ['[ada@example.test](mailto:ada@example.test?bcc=eve@evil.test)', 'ada@example.test, eve@evil.test'],
    ['[mail](mailto:ada@example.test?CC=eve@evil.test&subject=Hi)', 'ada@example.test, eve@evil.test'],
    ['[ada@example.test](mailto:a@evil.test)', 'a@evil.test'],
    ['[ada@example.test](mailto:ada@example.test,eve@evil.test)', 'ada@example.test,eve@evil.test'],
    ['[gmail.com](mailto:?subject=Hi)', 'mail'],
  ].map((row) => (typeof row === 'string' ? [`[${row}](https://evil.test/)`, 'evil.test'] : row)),
)('a link says where it leads: %s', (source, host) => {
  expect(target(source)).toBe(host);
});

it.each([
  '[docs](https://example.test/a)',
  '[The docs of Node.js](https://nodejs.org/)',
  '[package.json](https://github.com/a/b/blob/main/package.json)',
  '[README.md](https://github.com/a/b/blob/main/README.md)',
  '[github.com](https://github.com/a)',
  '[github.com](https://gist.github.com/a)',
  '[www.github.com](https://github.com/a)',
  '[https://github.com/a?b=c](https://github.com/a?b=c)',
  '<https://example.test/a>',
  'https://example.test/a.',
  '[ada@example.test](mailto:ada@example.test)',
  '[xn--80ak6aa92e.com](https://xn--80ak6aa92e.com/)',
  '[v1.2.3](https://example.test/releases)',
  '[e.g. this](https://example.test/)',
  '[Mail Ada.B@example.com.](mailto:ada.b@example.com?subject=Hi&cc=)',
  '[https://a.test/https://b.test/c](https://a.test/https://b.test/c)',
  ...[
    ...[
      'process.env',
      'Array.from',
      'obj.name',
      'user.id',
      'foo.bar()',
      'ASP.NET Core',
      'Json.NET',
      'std.io',
      'System.IO',
    ],
    ...['main.py and util.rs', 'src/main.rs:3', 'setup.sh line 3', 'a/b#1', 'Done.It works', 'import.meta.env.DEV'],
    ...[
      'vercel/next.js',
      'logger.info',
      'Object.is',
      'README.md#x',
      './github.com/x',
      'node:fs',
      'C:\\\\x.com',
      'localhost',
    ],
  ].map((text) => `[${text}](https://docs.test/a)`),
])('a link whose text is no other address stays as it is: %s', (source) => {
  expect(target(source)).toBeNull();
});
