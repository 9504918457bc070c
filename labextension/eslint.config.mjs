import js from '@eslint/js';
import jupyter from '@jupyter/eslint-plugin';
import prettier from 'eslint-config-prettier';
import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['lib', 'node_modules', '.yarn', '*.cjs', '*.mjs', 'style/*.js'] },
  js.configs.recommended,
  ...tseslint.configs.recommended,
  jupyter.configs.recommended,
  prettier,
  {
    files: ['src/**/*.{ts,tsx}'],
    languageOptions: {
      parserOptions: { project: 'tsconfig.test.json', tsconfigRootDir: import.meta.dirname }
    },
    rules: {
      '@typescript-eslint/naming-convention': [
        'error',
        { selector: 'interface', format: ['PascalCase'], custom: { regex: '^I[A-Z]', match: true } }
      ],
      '@typescript-eslint/no-unused-vars': ['warn', { args: 'none' }],
      '@typescript-eslint/no-floating-promises': 'error',
      // The whole bundle is 90 kB, and the panel, its commands and the marks are needed at once.
      'jupyter/prefer-lazy-imports': 'off',
      curly: ['error', 'all'],
      eqeqeq: 'error',
      'no-undef': 'off'
    }
  },
  { files: ['src/__tests__/**'], rules: { 'jupyter/no-untranslated-string': 'off' } }
);
