import { plainWords } from '../plainWords';
import { channels, isDarkColor } from '../theme';

describe('a colour', () => {
  it('is read as browsers compute it', () => {
    expect(channels('rgb(24, 24, 24)')).toEqual([24, 24, 24, 1]);
    expect(channels('rgba(0, 0, 0, 0)')).toEqual([0, 0, 0, 0]);
    expect(channels('rgb(1 2 3 / 0.5)')).toEqual([1, 2, 3, 0.5]);
    expect(channels('transparent')).toBeNull();
    expect(channels('color(srgb 1 1 1)')).toBeNull();
  });

  it('is dark, light, or says nothing', () => {
    expect(isDarkColor('rgb(24, 24, 24)')).toBe(true);
    expect(isDarkColor('rgb(255, 255, 255)')).toBe(false);
    expect(isDarkColor('rgba(0, 0, 0, 0.1)')).toBeNull();
  });
});

describe('plain words', () => {
  it('are filled in, and counted', () => {
    expect(plainWords.__('Run %1: %2', 'a %2', 'done')).toBe('Run a %2: done');
    expect(plainWords._n('%1 step', '%1 steps', 1)).toBe('1 step');
    expect(plainWords._n('%1 step of %2', '%1 steps of %2', 2, 'x')).toBe('2 steps of x');
  });
});
