// Only pure modules are tested here (no JupyterLab import), so Node is enough; what touches the page is tested in a
// real browser (tests/browser).
module.exports = {
  testEnvironment: 'node',
  testRegex: 'src/__tests__/.*\\.spec\\.tsx?$',
  transform: { '^.+\\.tsx?$': ['ts-jest', { tsconfig: 'tsconfig.jest.json', diagnostics: false }] }
};
