// The methods of the specification's examples, for the servers in Node. They return undefined if the params do not fit.

const isNumber = (value) => typeof value === 'number';

export function subtract(params) {
  const [minuend, subtrahend, ...rest] = Array.isArray(params) ? params : [params?.minuend, params?.subtrahend];
  return isNumber(minuend) && isNumber(subtrahend) && !rest.length ? minuend - subtrahend : undefined;
}

export function sum(values) {
  const fit = Array.isArray(values) && values.every(isNumber);
  return fit ? values.reduce((total, value) => total + value, 0) : undefined;
}

export const data = ['hello', 5];
