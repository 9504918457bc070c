/** Bundles the panel for output cells: one module and one style sheet, with React inside. */
import { build } from 'esbuild';

const outdir = '../jupyter_durable/widget/static';

await build({
  entryPoints: { widget: 'src/widget.tsx' },
  outdir,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  minify: true,
  define: { 'process.env.NODE_ENV': '"production"' },
  tsconfig: 'tsconfig.json',
  legalComments: 'none',
  logLevel: 'warning'
});
await build({
  entryPoints: { widget: 'style/output.css' },
  outdir,
  bundle: true,
  minify: true,
  logLevel: 'warning'
});
